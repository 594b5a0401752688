# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs in a guest: connects to nvmet.sh's disk, writes and reads it, and disconnects.

usage: nvme_client.py ADDRESS ROUNDS

The data of each round is random and compared after it was read back, in requests of 4 KiB to
1 MiB past the page cache.  The last round disconnects while reads are under way.  Prints one
line a round with the seconds that each step took.
"""
import glob
import mmap
import os
import sys
import threading
import time

SIZE = 1 << 20
REQUEST_SIZES = (4096, 65536, SIZE)
DEVICE_TIMEOUT_S = 10


def connect(address):
    fd = os.open("/dev/nvme-fabrics", os.O_RDWR)
    os.write(fd, f"transport=rdma,traddr={address},trsvcid=4420,nqn=test,nr_io_queues=2,"
                 "queue_size=32".encode())
    instance = os.read(fd, 100).decode().split("instance=")[1].split(",")[0]
    os.close(fd)
    return instance


def wait_for_disk(instance):
    deadline = time.monotonic() + DEVICE_TIMEOUT_S
    while time.monotonic() < deadline:
        found = glob.glob(f"/dev/nvme{instance}n*")
        if found:
            return found[0]
        time.sleep(0.05)
    sys.exit(f"nvme{instance} has no namespace after {DEVICE_TIMEOUT_S} s")


def transfer(call, fd, memory, request):
    view = memoryview(memory)
    for offset in range(0, SIZE, request):
        done = call(fd, [view[offset:offset + request]], offset)
        if done != request:
            sys.exit(f"request of {request} bytes at {offset}: {done} done")
    view.release()


def exercise(disk):
    fd = os.open(disk, os.O_RDWR | os.O_DIRECT)
    for request in REQUEST_SIZES:
        written, read = mmap.mmap(-1, SIZE), mmap.mmap(-1, SIZE)
        written.write(os.urandom(SIZE))
        transfer(os.pwritev, fd, written, request)
        transfer(os.preadv, fd, read, request)
        if written[:] != read[:]:
            sys.exit(f"requests of {request} bytes: read something else than was written")
    os.close(fd)


def delete(instance):
    with open(f"/sys/class/nvme/nvme{instance}/delete_controller", "w") as control:
        control.write("1")


def read_until_error(disk, reading):
    fd = os.open(disk, os.O_RDONLY | os.O_DIRECT)
    memory = mmap.mmap(-1, SIZE)
    try:
        while True:
            os.preadv(fd, [memory], 0)
            reading.set()
    except OSError:
        pass
    finally:
        os.close(fd)


def disconnect_busy(address):
    """The reads that are under way end, with an error, and so does the disconnect."""
    instance = connect(address)
    disk, reading = wait_for_disk(instance), threading.Event()
    readers = [threading.Thread(target=read_until_error, args=(disk, reading), daemon=True) for _ in range(4)]
    for reader in readers:
        reader.start()
    reading.wait(DEVICE_TIMEOUT_S)
    start = time.monotonic()
    delete(instance)
    for reader in readers:
        reader.join(DEVICE_TIMEOUT_S)
        if reader.is_alive():
            sys.exit(f"a read did not end within {DEVICE_TIMEOUT_S} s of the disconnect")
    print("busy disconnect %.2f" % (time.monotonic() - start), flush=True)


def main():
    address, rounds = sys.argv[1], int(sys.argv[2])
    for _ in range(rounds):
        times = [time.monotonic()]
        instance = connect(address)
        times.append(time.monotonic())
        exercise(wait_for_disk(instance))
        times.append(time.monotonic())
        delete(instance)
        times.append(time.monotonic())
        print("connect %.2f transfer %.2f disconnect %.2f" %
              tuple(b - a for a, b in zip(times, times[1:])), flush=True)
    disconnect_busy(address)


main()
