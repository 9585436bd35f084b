"""TLS where plain HTTP is spoken, and the other way round; certificates of other times."""

from __future__ import annotations

import itertools
import socket
import ssl
import threading
from http.client import BadStatusLine, RemoteDisconnected

import pytest
from urllib3 import exceptions as urllib3_errors

from bloomery.conf.drivers import Redfish
from bloomery.drivers.redfish import no_answer, wire
from bloomery.drivers.redfish.driver_info import Account
from bloomery.lab import tls

TLS = ssl.TLSVersion


def words_of(
    exc: BaseException, all_s: float = 60, waited_s: float = 0, *, may_be_tls: bool = False
) -> str:
    limits = no_answer.Limits(conf=Redfish(), all_s=all_s)
    explained = no_answer.explain(exc, limits, waited_s, is_reading=False, may_be_tls=may_be_tls)
    return str(explained)


NO_CONNECTION = urllib3_errors.ConnectTimeoutError("timed out")
SILENCE = urllib3_errors.ReadTimeoutError(None, "/", "timed out")  # type: ignore[arg-type]
THE_REST = "(the rest of the call, see [bmc]call_timeout)"
CONNECTED = "it accepted the connection and gave no answer within "


@pytest.mark.parametrize(
    ("exc", "all_s", "waited_s", "words"),
    [
        (NO_CONNECTION, 60, 10, "no connection within 10 s ([redfish]connect_timeout)"),
        (NO_CONNECTION, 3, 3, f"no connection within 3 s {THE_REST}"),
        (SILENCE, 60, 30, CONNECTED + "30 s ([redfish]read_timeout)"),
        (SILENCE, 60, 10, CONNECTED + "10 s ([redfish]connect_timeout)"),  # a TLS handshake
        (SILENCE, 4, 4, f"{CONNECTED}4 s {THE_REST}"),
        (TimeoutError(), 60, 60, "its answer did not end within 60 s ([bmc]call_timeout)"),
    ],
)
def test_a_wait_names_its_limit_and_tells_a_slow_bmc_from_one_that_is_gone(
    exc, all_s, waited_s, words
):
    assert words_of(exc, all_s, waited_s) == words


def test_a_port_that_speaks_no_tls_is_told():
    """A handshake with a server that answers in plain HTTP, as it really fails."""
    ours, theirs = socket.socketpair()
    server = threading.Thread(target=lambda: (theirs.recv(1), theirs.sendall(b"HTTP/1.1 400 x\n")))
    server.start()
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLError) as failed:
        context.wrap_socket(ours, server_hostname="bmc.test")
    server.join()
    ours.close()
    theirs.close()
    words = words_of(urllib3_errors.SSLError(failed.value))
    assert "speaks plain HTTP at this port" in words
    assert "http://" in words


def test_a_port_that_speaks_tls_alone_is_told():
    alert = BadStatusLine("\x15\x03\x01\x00\x02\x02F")
    words = words_of(urllib3_errors.ProtocolError("Connection aborted.", alert))
    assert "speaks TLS at this port" in words
    assert "https://" in words


@pytest.mark.parametrize("may_be_tls", [True, False])
def test_a_connection_closed_at_once_hints_at_tls_where_plain_http_never_worked(may_be_tls):
    closed = RemoteDisconnected("Remote end closed connection without response")
    aborted = urllib3_errors.ProtocolError("Connection aborted.", closed)
    assert ("use https://" in words_of(aborted, may_be_tls=may_be_tls)) is may_be_tls


def test_a_certificate_of_the_future_is_a_matter_of_clocks():
    early = ssl.SSLCertVerificationError("verify failed")
    early.verify_message = "certificate is not yet valid"
    assert "set the clock of the BMC" in words_of(urllib3_errors.SSLError(early))


CIPHERS = "set driver_info/redfish_tls_ciphers, such as"


@pytest.mark.parametrize(
    ("server", "client", "advice"),
    [
        ({"maximum_version": TLS.TLSv1_2}, {"oldest": "1.3"}, "redfish_tls_minimum_version to 1.1"),
        ({"minimum_version": TLS.TLSv1_3}, {"newest": TLS.TLSv1_2}, "redfish_tls_minimum_version"),
        (
            {"maximum_version": TLS.TLSv1_2, "ciphers": "ECDHE-RSA-AES128-GCM-SHA256"},
            {"ciphers": "ECDHE-RSA-AES256-GCM-SHA384"}, CIPHERS,
        ),
        ({}, {"ciphers": "NO-SUCH-CIPHER"}, CIPHERS),
    ],
    ids=["older", "newer", "other ciphers", "unknown cipher"],
)  # fmt: skip
def test_the_option_that_helps_with_tls_is_named(tmp_path, server, client, advice):
    """Handshakes with a server of other settings, as they really fail."""
    with pytest.raises((ssl.SSLError, no_answer.NoAnswer)) as failed:
        shake_hands(tmp_path, server, client)
    exc = failed.value
    words = str(exc) if isinstance(exc, no_answer.NoAnswer) else words_of(
        urllib3_errors.SSLError(exc)
    )  # fmt: skip
    assert "TLS refused: " in words
    assert advice in words


def shake_hands(folder, server, client):
    account = Account(
        address="https://bmc.test", root="/redfish/v1/", system=None, username=None, password=None,
        verify=False, auth_type="auto", tls_minimum_version=client.get("oldest"),
        tls_ciphers=client.get("ciphers"),
    )  # fmt: skip
    ours = wire.tls_context(account)
    wire._cached_context.cache_clear()  # it is changed here
    if "newest" in client:
        ours.maximum_version = client["newest"]
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(*tls.certificate(folder))
    theirs.set_ciphers(server.get("ciphers", "DEFAULT"))
    for name in ("minimum_version", "maximum_version"):
        setattr(theirs, name, server.get(name, getattr(theirs, name)))
    near, far = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        ours.wrap_bio(near, far, server_hostname="bmc.test"),
        theirs.wrap_bio(far, near, server_side=True),
    ]
    for end in itertools.cycle(ends):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError:
            if end is ends[0]:
                raise
        else:
            return
