"""The conformance suite asserts in plain modules, whose failures should tell as much as a test's."""

import pytest

pytest.register_assert_rewrite("store.conformance", "support.store_builders")
