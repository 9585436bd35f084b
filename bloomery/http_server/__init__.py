"""The HTTP server inside each process: few threads, many connections, no API.

    serving = Server(app, Settings(host="127.0.0.1", port=0, threads=4, advice=...))
    serving.start()

Bytes pass these files in this order: ``connections`` (sockets, one thread), ``messages`` (HTTP
parser), ``server`` (worker threads), ``wsgi`` (environment in, bytes out), ``streams`` (answers
without an end).
"""
