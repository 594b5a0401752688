# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The lab accepted by the in-tree driver: what it can do on the model, the lab can do.

Where the in-tree driver itself fails, the test says so and why.
"""
import pytest

import traffic

pytestmark = pytest.mark.not_debug


@pytest.fixture
def lab(labs):
    return labs.get("intree")


@pytest.fixture
def siw_lab(own_lab):
    """One processor: see test_connect.py."""
    lab = own_lab({"A": "intree", "B": "siw"}, cpus=1)
    lab["B"].known_fault = traffic.SIW_FAULT
    return lab


def test_device_shows(lab):
    for host in lab.hosts.values():
        out = host.run("rdma link").out
        assert "state ACTIVE physical_state LINK_UP" in out, f"expected an active link, got {out!r}"


# from the smallest to the largest that this rping takes
@pytest.mark.parametrize("size", [24, 64, 1500, 4096, 65535])
@pytest.mark.parametrize("ip6", [False, True], ids=["ipv4", "ipv6"])
def test_rping(lab, size, ip6):
    traffic.rping(lab["B"], lab["A"], size, ip6=ip6)
    traffic.rping(lab["A"], lab["B"], size, ip6=ip6)


def test_many_connections(lab):
    traffic.ucmatose(lab["B"], lab["A"], connections=50)


def test_cmtime(lab):
    traffic.cmtime(lab["B"], lab["A"], connections=100)


@pytest.mark.parametrize("tool", ["ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat"])
def test_perftest(lab, tool):
    rows = traffic.perftest(tool, lab["B"], lab["A"], "-s 4096 -n 500")
    assert rows[0][0] == 4096


@pytest.fixture
def loss(lab):
    """One per cent of all frames lost."""
    with lab.wire_fault("drop rate=10"):
        yield


def test_rping_at_loss(lab, loss):
    traffic.rping(lab["B"], lab["A"], 4096, count=20)


@pytest.mark.parametrize("tool", ["ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat"])
def test_perftest_at_loss(lab, loss, tool):
    traffic.perftest(tool, lab["B"], lab["A"], "-s 4096 -n 500")


def test_siw_as_server(siw_lab):
    traffic.rping_siw_server(siw_lab, 4096)


def test_siw_as_client_is_refused(siw_lab):
    """Expected failure of the in-tree driver: it resets an MPA request without the flag A.

    siw asks for the client-server mode of RFC 6581; the driver knows peer-to-peer only.
    """
    with pytest.raises(AssertionError, match="REJECTED, error -104"):
        traffic.rping(siw_lab["A"], siw_lab["B"], 4096)
