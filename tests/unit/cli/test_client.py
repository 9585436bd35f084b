"""What a person reads of an API that says no: its own words, and no HTTP around them."""

from __future__ import annotations

import http.server
import json
import socket
import threading

import pytest

from bloomery.cli.client import ApiError, Client

IRONIC = {"error_message": json.dumps({"faultstring": "Node n1 could not be found."})}
FORMS = {
    "Ironic, encoded twice": (IRONIC, "Node n1 could not be found."),
    "Ironic, plain": ({"error_message": {"faultstring": "no such node"}}, "no such node"),
    "of a login": ({"error_message": "Authorization required"}, "Authorization required"),
    "Heat": ({"error": {"message": "Property error: count"}}, "Property error: count"),
    "somebody else's": (["odd"], '["odd"]'),
}


class Refusing(http.server.BaseHTTPRequestHandler):
    document: object = None

    def do_GET(self) -> None:
        body = json.dumps(self.document).encode()
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        return


@pytest.fixture
def server():
    with http.server.HTTPServer(("127.0.0.1", 0), Refusing) as refusing:
        thread = threading.Thread(target=refusing.serve_forever, daemon=True)
        thread.start()
        yield refusing
        refusing.shutdown()
        thread.join()


@pytest.mark.parametrize(("document", "words"), FORMS.values(), ids=FORMS)
def test_an_error_is_the_sentence_of_the_api(server, document, words):
    Refusing.document = document
    with pytest.raises(ApiError) as refused:
        Client(f"http://127.0.0.1:{server.server_port}").get("/v1/nodes/n1")
    assert str(refused.value) == f"{words} (HTTP 400)"
    assert refused.value.facts["answer"] == 400


def test_who_does_not_answer_is_named_by_address():
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and does not listen
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(ApiError, match=f"cannot reach {address}: .*; is the service") as no:
            Client(address).get("/v1/nodes/n1")
    assert no.value.facts["answer"] is None
