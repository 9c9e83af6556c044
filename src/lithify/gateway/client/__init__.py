"""A lake behind a gateway: the calls of `lithify.api.Lake` as requests, made of the table of operations.

    address       where the gateway is, how it is reached, and the token
    connection    one request and its answer, within bounds of time and size
    answers       reports and errors out of answers
    jobs          long work: its events as they come, until it has ended
    calls         calls of the Python API as requests
    appending     batches of records, each of which lands once
    reading       records as lines, whole or followed
    remote_lake   RemoteLake, RemoteTopic, RemoteStream, RemoteGroup
    completion_names   names for a shell

It imports no server library, and neither PyIceberg nor PyArrow: a command through a gateway starts fast.
"""
