from __future__ import annotations

import subprocess
import sys
from typing import Any

import orjson
import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st
from oslo_utils import strutils

from bloomery import errors, secrets
from bloomery.model.rules import attributes

KEY = Fernet.generate_key()
SEALER = secrets.Sealer(KEY)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
NAMES = st.sampled_from(["redfish_password", "ipmi_PASSWORD", "secret_uuid", "address", "x", "ü"])


def documents(scalars: st.SearchStrategy[Any] = SCALARS) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=12,
    )


@given(documents())
def test_what_was_sealed_opens_to_what_it_was(value: Any):
    assert SEALER.open(SEALER.seal(value)) == value


@given(documents())
def test_sealing_twice_is_sealing_once(value: Any):
    sealed = SEALER.seal(value)
    assert SEALER.seal(sealed) == sealed


@given(documents())
def test_masking_does_not_need_to_open(value: Any):
    assert secrets.mask(SEALER.seal(value)) == secrets.mask(value)


@given(documents())
def test_where_no_secret_is_suspected_masking_changes_nothing(value: Any):
    if not secrets.may_hold_secret(orjson.dumps(value).decode()):
        assert secrets.mask(value) == value


@given(
    st.dictionaries(
        st.sampled_from(["password", "admin_Pass", "auth_token", "name", "x"])
        | st.text(max_size=6),
        st.sampled_from(["plain", "password = hunter2", '{"admin_pass": "x"}'])
        | st.text(max_size=9),
    ),
)
def test_masking_dictionaries_of_strings_agrees_with_the_reference(value: dict[str, str]):
    assert secrets.mask(value) == strutils.mask_dict_password(value, secrets.MASK)


@pytest.mark.parametrize("word", strutils._SANITIZE_KEYS)
def test_each_word_of_oslo_names_a_secret(word: str):
    assert secrets.is_secret_key(word)


@pytest.mark.parametrize(
    "name",
    [
        "snmp_auth_key",
        "snmp_priv_key",
        "redfish_password",
        "AUTH_TOKEN",
        "ipmi_hex_kg_key",
        "snmp_community",
        "api_key",
        "auth_key",
        "vendor_AccessKey_access_key",
        "agent_priv_key",
        "encryption_key",
        "bmc_passwd",
        "pdu_pwd",
        "cloud_credentials",
    ],
)
def test_keys_that_sound_like_secrets_are_secret(name: str):
    assert secrets.is_secret_key(name)
    sealed = SEALER.seal({name: "hunter2", "address": "hunter2's host"})
    assert "hunter2" not in orjson.dumps(sealed[name]).decode()
    assert sealed["address"] == "hunter2's host"
    assert secrets.mask(sealed)[name] == secrets.MASK


def test_an_image_url_is_masked_in_instance_info_alone():
    assert secrets.mask({"image_url": "x"}) == {"image_url": "x"}
    assert secrets.mask({"image_url": "x"}, instance_info=True) == {"image_url": secrets.MASK}
    assert secrets.may_hold_secret('{"image_url": "x"}')


def test_a_text_is_compared_with_a_secret_that_is_opened_once(monkeypatch: pytest.MonkeyPatch):
    sealer, sealed, opened = secrets.Sealer(KEY), SEALER.seal({"password": "x"})["password"], []
    again, decrypt = SEALER.seal({"password": "x"})["password"], sealer._decrypted
    monkeypatch.setattr(sealer, "_decrypted", lambda value: opened.append(1) or decrypt(value))
    cases = ((sealed, "y"), (sealed, "x"), (sealed, ""), (again, "x"), (again, "y"), ("x", "x"))
    assert [sealer.is_of(*case) for case in cases] == [False, True, False, True, False, True]
    assert len(opened) == 2
    assert not sealer.is_of({"a": 1}, "x")


def test_digests_of_secrets_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(secrets, "_MOST_DIGESTS", 3)
    sealer = secrets.Sealer(KEY)
    assert all(sealer.is_of(str(number), str(number)) for number in range(10))
    assert len(sealer._digests) <= 3


def test_another_key_does_not_open_and_says_which_one_would():
    sealed = SEALER.seal({"password": "x"})
    other = secrets.Sealer(Fernet.generate_key())
    with pytest.raises(errors.KeyMissing, match=f"key {SEALER.key_id}.*key {other.key_id}"):
        other.open(sealed)


def test_a_key_id_says_nothing_of_the_key_but_tells_keys_apart():
    assert SEALER.key_id == secrets.Sealer(KEY).key_id
    assert SEALER.key_id != secrets.Sealer(Fernet.generate_key()).key_id
    assert SEALER.key_id not in KEY.decode()


@pytest.mark.parametrize(
    "value",
    [{"$sealed": "x"}, {"a": [1, {"b": {"$sealed": None}}]}, [{"$sealed": "x", "token": "y"}]],
)
def test_clients_cannot_send_what_looks_sealed(value: Any):
    with pytest.raises(errors.InvalidParameterValue, match=r"'\$sealed' in driver_info"):
        attributes.refuse_sealed(value, "driver_info")


@pytest.mark.parametrize("value", [{"a_password": "******"}, {"a": [{"a_password": "******"}]}])
def test_a_mask_that_comes_back_is_not_sealed(value: Any):
    with pytest.raises(errors.InvalidParameterValue, match="value of a_password is the mask"):
        SEALER.seal(value)


@given(documents())
def test_clients_can_send_everything_else(value: Any):
    attributes.refuse_sealed(value, "extra")


def test_a_text_is_sealed_as_a_whole():
    text = '{"plain_name": "caf\u00e9 12345"}'
    sealed = SEALER.seal_text(text)
    assert orjson.loads(sealed)[attributes.SEALED] == SEALER.key_id
    assert "12345" not in sealed
    assert SEALER.open_text(sealed) == text
    with pytest.raises(errors.KeyMissing):
        secrets.Sealer(Fernet.generate_key()).open_text(sealed)


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("http://images.test/a.iso", "http://images.test/a.iso"),
        ("http://ann:pass-word@images.test/a.iso", "http://******@images.test/a.iso"),
        ("http://ann@images.test/a.iso?sig=abc#x", "http://******@images.test/a.iso?******#x"),
        ("http://[::1", "http://[::1"),
        ("", ""),
        (
            f"http://host/boot-files/{'0' * 36}-{'s' * 43}.iso",
            f"http://host/boot-files/{'0' * 36}-******.iso",
        ),
    ],
)
def test_an_address_is_shown_without_a_login_and_a_signature(address, masked):
    assert secrets.mask_address(address) == masked


@pytest.mark.parametrize(
    ("address", "masked"),
    [
        ("https://u:e@bmc-u.example/e", "https://******@bmc-u.example/e"),
        ("http://images/a?a", "http://images/a?******"),
        ("https://us\ter:p\tw@host/image", "https://******@host/image"),
        ("//root@10.0.0.7", "//******@10.0.0.7"),
        ("https://user:pw@[::1/x", "https://******@[::1/x"),
        ("https://user:p[w@host/x?sig=ab", "https://******@host/x?******"),
        ("https://user:p/w@w@host/x", "https://******@host/x"),
        ("//root:p]w@10.0.0.7", "//******@10.0.0.7"),
        ("http://[::1/x?sig=ab", "http://[::1/x?******"),
    ],
)
def test_stars_stand_for_secrets_alone_however_they_are_written(address: str, masked: str):
    assert secrets.mask_address(address) == masked


ADDRESSES = {
    "deploy_iso": ("https://ann:pw!pw@images.test/a.iso", "https://******@images.test/a.iso"),
    "image_source": ("https://s3.test/os?X-Amz-Signature=ab", "https://s3.test/os?******"),
    "redfish_address": ("root:pw!pw@10.0.0.1", "******@10.0.0.1"),
    "url": ("https://ann:pw!pw@[::1/x", "https://******@[::1/x"),
}


@pytest.mark.parametrize(("name", "address"), [(n, plain) for n, (plain, _) in ADDRESSES.items()])
def test_an_address_with_a_secret_is_sealed_and_masked_under_any_name(name: str, address: str):
    value = {name: address, "nested": [{name: address}]}
    sealed = SEALER.seal(value)
    text = orjson.dumps(sealed).decode()
    assert ("pw!pw" in text, "X-Amz" in text) == (False, False)
    shown = ADDRESSES[name][1]
    assert secrets.mask(sealed) == secrets.mask(value) == {name: shown, "nested": [{name: shown}]}
    assert secrets.may_hold_secret(orjson.dumps(value).decode())
    assert SEALER.seal(sealed) == sealed
    assert SEALER.open(sealed) == value


@pytest.mark.parametrize(
    "value",
    [
        "https://images.test/a.iso", "https://[2001:db8::1]/redfish/v1", "10.0.0.1:8443",
        "cannot fetch https://images.test/a.iso: why?", "ann@example.org", "file:///srv/a.iso",
    ],
)  # fmt: skip
def test_other_addresses_and_texts_stay_as_they_are(value: str):
    document = {"image_source": value, "list": [value]}
    assert SEALER.seal(document) == secrets.mask(document) == document


@pytest.mark.parametrize("value", ["joe@example.com", "joe.doe+ops@mx-1.example.com"])
def test_a_mail_address_is_no_login(value: str):
    document = {"contact_address": value}
    assert SEALER.seal(document) == secrets.mask(document) == document


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("redfish_address", "root@bmc.example.com", "******@bmc.example.com"),
        ("bmc_address", "root:pw@bmc.example.com", "******@bmc.example.com"),
        ("bmc_address", "root@bmc.example.com:8443", "******@bmc.example.com:8443"),
        ("bmc_address", "root@bmc.example.com/redfish", "******@bmc.example.com/redfish"),
        ("bmc_address", "root@[2001:db8::1]", "******@[2001:db8::1]"),
        ("bmc_address", "ro@ot@bmc.example.com", "******@bmc.example.com"),
    ],
)
def test_a_login_of_a_bmc_without_a_scheme_is_sealed_and_masked(name, value, shown):
    assert secrets.mask(SEALER.seal({name: value})) == {name: shown}
    assert secrets.mask({name: value}) == {name: shown}


def test_addresses_in_lists_are_sealed_once():
    sealed = SEALER.seal(["https://ann:pw@a.test", "x"])
    assert SEALER.seal(sealed) == sealed
    assert secrets.mask(sealed) == ["https://******@a.test", "x"]


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_with_a_mask_that_comes_back_is_not_sealed(name: str):
    with pytest.raises(errors.InvalidParameterValue, match=f"value of {name} is the mask .*or has"):
        SEALER.seal({name: ADDRESSES[name][1]})


def test_engine_is_loaded_with_the_first_secret():
    program = (
        "import sys; from bloomery import key_file, secrets; "
        "sealer = secrets.Sealer(key_file.new_key()); "
        "sealer.open(sealer.seal({'address': 'x'})); before = 'cryptography' in sys.modules; "
        "sealer.seal({'password': 'x'}); print(before, 'cryptography' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert answer.stdout.split() == ["False", "True"]


@pytest.mark.parametrize("key", [b"", b"short", KEY[4:]], ids=["empty", "short", "cut"])
def test_what_is_no_key_is_refused_at_once(key: bytes):
    with pytest.raises(ValueError):
        secrets.Sealer(key)


@pytest.mark.parametrize(
    ("secret", "words", "shown"),
    [
        ("pass", "the password may pass", "the password may ******"),
        ("wrong", "user root:wrong@bmc, wrongly sent", "user root:******@bmc, wrongly sent"),
        ("wrong", '{"Password":"wrong"} 1wrong2', '{"Password":"******"} 1******2'),
        ("s3cret", "xs3crety", "x******y"),
        ("a.b", "1a.b2 axb", "1******2 axb"),
        ("süß", "süßer", "******er"),
    ],
)
def test_what_a_bmc_repeats_is_hidden_and_words_around_it_are_not(secret, words, shown):
    assert secrets.hide(words, [secret]) == shown


def test_the_newest_key_seals_and_all_keys_open():
    sealer = secrets.Sealer(Fernet.generate_key(), KEY)
    assert sealer.open(SEALER.seal({"password": "x"})) == {"password": "x"}
    assert sealer.seal_whole("x")["$sealed"] == sealer.key_id != SEALER.key_id


def test_a_running_sealer_takes_over_keys_that_were_added():
    keys = [KEY]
    sealer = secrets.Sealer(KEY, changed_keys=lambda: keys)
    keys = [Fernet.generate_key(), KEY]
    other = secrets.Sealer(keys[0])
    assert sealer.open(other.seal({"password": "x"})) == {"password": "x"}
    assert sealer.seal_whole("x")["$sealed"] == other.key_id


@pytest.mark.parametrize("keys", [[], [b"short"], [KEY, KEY[4:]]], ids=["none", "short", "cut"])
def test_a_file_that_is_half_copied_changes_nothing(keys: list[bytes]):
    sealer = secrets.Sealer(KEY, changed_keys=lambda: keys)
    assert SEALER.open(sealer.seal({"password": "x"})) == {"password": "x"}


@given(documents())
def test_values_are_sealed_anew_at_any_depth_and_in_text_inside_text(value: Any):
    sealed = orjson.dumps([SEALER.seal(value), SEALER.seal_text("x")]).decode()
    sealed = orjson.dumps({"text": sealed}).decode()
    both = secrets.Sealer(Fernet.generate_key(), KEY)
    text = both.reseal(sealed, SEALER.key_id)
    document, whole = orjson.loads(orjson.loads(text)["text"])
    assert SEALER.key_id not in text
    assert both.open(document) == value
    assert both.open_text(whole) == "x"


def test_a_forged_value_and_one_of_another_key_stay():
    both = secrets.Sealer(Fernet.generate_key(), KEY)
    forged = f'{{"$sealed":"{SEALER.key_id}","token":"gAAAAforged"}}'
    assert both.reseal(forged, SEALER.key_id) == forged
    assert both.reseal(SEALER.seal_text("x"), "0" * 8) != SEALER.seal_text("x")
