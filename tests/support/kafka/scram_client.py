"""A client of SCRAM that others wrote, message by message."""

from __future__ import annotations

import asyncio

from aiokafka.conn import ScramAuthenticator


class AioKafka:
    """The client of aiokafka."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        loop = asyncio.new_event_loop()
        loop.close()
        self._client = ScramAuthenticator(
            loop=loop, sasl_plain_username=user, sasl_plain_password=password, sasl_mechanism=mechanism
        )

    def first(self) -> bytes:
        return self._client.first_message().encode()

    def last(self, answer: str) -> bytes:
        self._client.process_server_first_message(answer)
        return self._client.final_message().encode()

    def check(self, answer: bytes) -> None:
        self._client.process_server_final_message(answer.decode())
