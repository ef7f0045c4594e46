#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# Writes the seeds of the targets that read bytes and not text; run it when a layout changes. What was found by fuzzing
# lies beside them and is left alone.
import os
import struct

here = os.path.dirname(os.path.abspath(__file__))


def write(target, **seeds):
    folder = os.path.join(here, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    for name, content in seeds.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


FRAMED, WITH_DEVICE, TOO_LONG = 1, 2, 4
HELLO, WELCOME, TAKE_POOL, POOL, CARRY, LAND, DROP, ENDED, REFUSED = range(1, 10)


def packet(kind, *words, body=b"", flags=FRAMED, descriptors=0):
    words = list(words) + [0] * (12 - len(words))
    content = struct.pack("<I12I", kind, *words) + body
    return struct.pack("<BBH", flags, descriptors, len(content)) + content


def raw(content, descriptors=0):
    return struct.pack("<BBH", 0, descriptors, len(content)) + content


def errand(
    kind, number, size, offset=0, allocation=65536, landing=0, worker=b"", name=b""
):
    # ErrandWords; the target fills in the lengths of the handle and of the device.
    return packet(
        kind,
        number,
        1,
        2,
        allocation,
        offset,
        size,
        landing,
        0,
        0,
        len(worker),
        len(name),
        body=worker + name,
        flags=FRAMED | WITH_DEVICE,
        descriptors=1,
    )


magic = struct.pack("<Q", 0x3178786463636102)
malformed = raw(magic[:5]) + raw(magic + bytes(104), 3)
note = struct.Struct("<IIQQQQQQ")  # FreightNote
begin = note.pack(0, 0, 1 << 32 | 5, 9, 0, 4096, 0, 4) + b"them" + b"address"
filled = note.pack(2, 0, 1 << 32 | 5, 0, 0, 4096, 0, 0)
nothing = note.pack(2, 0, 1 << 32 | 5, 0, 0, 0, 0, 0)
grant = note.pack(1, 0, 1, 0, 0, 4096, 64, 0) + b"key"
write(
    "proxy_server",
    pools=b"\0"
    + packet(TAKE_POOL, 65536)
    + packet(TAKE_POOL, 0xFFFFFFFF)
    + packet(TAKE_POOL, 0),
    stranger=b"\1" + packet(HELLO, 99),
    carry=b"\0"
    + errand(CARRY, 5, 4096, landing=7, worker=b"address", name=b"them")
    + packet(DROP, 5),
    land=b"\0"
    + errand(LAND, 5, 4096)
    + errand(LAND, 6, 0xFFFFFFFF)
    + errand(LAND, 7, 0, 65537),
    landing_met=b"\x10" + bytes([len(begin)]) + begin + errand(LAND, 5, 4096),
    filled=b"\x20"
    + bytes([len(begin)])
    + begin
    + bytes([len(filled)])
    + filled
    + errand(LAND, 5, 4096),
    filled_twice=b"\x50"
    + b"".join(
        bytes([len(one)]) + one for one in (begin, begin, filled, nothing, nothing)
    )
    + errand(LAND, 5, 8192),
    no_network=b"\2" + errand(CARRY, 5, 4096) + packet(TAKE_POOL, 4096),
    malformed=b"\0" + malformed,
    too_long=b"\0" + packet(DROP, 5, flags=FRAMED | TOO_LONG, body=b"x", descriptors=2),
    granted_early=b"\x10"
    + bytes([len(grant)])
    + grant
    + errand(CARRY, 5, 4096, landing=7, worker=b"a"),
)

write(
    "proxy_client",
    pool=packet(POOL, 131072, 4096, flags=FRAMED, body=b"key", descriptors=1),
    pool_bare=packet(POOL, 131072, 4096),
    ended=packet(ENDED, 2, 0)
    + packet(ENDED, 1, 7, body=b"why")
    + packet(ENDED, 1, 0xFFFFFFFF)
    + packet(77),
    refused=packet(REFUSED, 8, body=b"no room") + packet(REFUSED, 0),
    malformed=malformed,
)


def parcel(how, sender=3, item=5, generation=7, other=None):
    content = struct.pack("<BiiI", how, sender, item, generation)
    return content if other is None else content + bytes([len(other)]) + other


write(
    "parcels",
    usual=parcel(2 | 32) + parcel(4, generation=8) + parcel(1 | 64, generation=9),
    again=parcel(3) + parcel(3) + parcel(0) + parcel(32),
    other=parcel(7)
    + parcel(2 | 16)
    + parcel(2 | 8, other=b"")
    + parcel(1 | 8, other=bytes(32)),
)


# Places of node::Record.
OK, WITH_DESCRIPTOR, HANDLE_BYTES, OFFSET, SIZE, GRANTED = 64, 80, 84, 88, 112, 120


def change(place, value):
    return (
        struct.pack("<HBQ", place, 8, value)
        if place >= OFFSET
        else struct.pack("<HBI", place, 4, value)
    )


write(
    "records",
    true=b"\0",
    inboxes=b"\1",
    declines=b"\0" + change(OK, 0),
    no_descriptor=b"\0" + change(WITH_DESCRIPTOR, 0),
    long_handle=b"\0" + change(HANDLE_BYTES, 4096),
    offset=b"\0" + change(OFFSET, 1 << 60),
    size=b"\0" + change(SIZE, 1 << 40) + change(OFFSET, 1 << 39),
    granted=b"\0" + change(GRANTED, 0),
    inbox_granted=b"\1" + change(GRANTED, 0),
    inbox_offset=b"\1" + change(OFFSET, 4096) + change(SIZE, 4096),
)


def header(how, ticket, generation, sender, slot, stage, place, its, receiver):
    return struct.pack(
        "<BQQIBBHQBHIb",
        how,
        ticket,
        0,
        generation,
        sender,
        0,
        slot,
        64,
        stage,
        place,
        its,
        receiver,
    )


# A ticket is generation, sender and slot.
ticket = 7 << 32 | 1 << 16 | 3
write(
    "headers",
    recognised=header(3, ticket, 7, 1, 3, 3, 3, 7, 0),
    taken=header(3, ticket, 7, 1, 3, 6, 3, 7, 0),
    of_another=header(3, ticket, 7, 1, 3, 3, 3, 7, 1),
    no_rank=header(3, 7 << 32 | 255 << 16 | 65535, 7, 255, 65535, 3, 3, 7, 0),
    guessed=header(0, ticket, 7, 1, 3, 3, 3, 7, 0),
)


def said(text=b"", code=0):
    return struct.pack("<H", len(text)) + text + struct.pack("<b", code)


opened = b"\1" + said() + struct.pack("<i", 5) + b"ab" + bytes(8)
write(
    "plugins",
    usual=opened + said() + b"\1" + said() + said() * 4,
    endless_error=b"\1" + said(b"x" * 256, 1) + b"\1" + said(b"y" * 256, 1),
    old=b"\1" + said() + struct.pack("<i", -1) + b"ab",
    nothing=opened + said() + b"\0" + said() + said(b"z" * 256, 3) * 3,
)

INVITATION, ACCEPTANCE, GREETING, ANSWER, ASK = range(5)
REFUSAL, OTHERWISE, DISMISSAL, TO_SENDER, TO_RECEIVER = range(5, 10)


def mail(what, number, body=b"", sender=1):
    content = struct.pack("<III", what, sender, number) + body
    return bytes([0, len(content)]) + content


def freight(content):
    return bytes([1, len(content)]) + content


design = struct.Struct("<I").pack
place = struct.pack("<QII", 7, 4, 4) + b"workname"
numbers = {kind: kind << 24 | 1 for kind in range(4)}
write(
    "mail",
    asked=b"\0"
    + mail(INVITATION, 0)
    + mail(ACCEPTANCE, 0)
    + mail(ASK, numbers[0], design(0)),
    asked_twice=b"\0"
    + mail(ASK, numbers[0], design(2) + place) * 2
    + mail(DISMISSAL, numbers[0]),
    kept=b"\x08"
    + mail(ASK, numbers[0], design(0))
    + mail(DISMISSAL, numbers[0], b"\1"),
    unknown_design=b"\0"
    + mail(ASK, numbers[0], design(99))
    + mail(ASK, numbers[0], b"x"),
    refused=b"\0"
    + mail(REFUSAL, numbers[0], b"why")
    + mail(TO_RECEIVER, numbers[0], b"x" * 40),
    otherwise=b"\1" + mail(OTHERWISE, numbers[1]) + mail(TO_RECEIVER, numbers[1]),
    stranger=b"\0"
    + mail(ASK, 77, design(0), sender=0)
    + mail(GREETING, 0)
    + mail(ANSWER, 0)
    + mail(10, 1)
    + mail(INVITATION, 0, sender=5),
    **{
        f"carried_{kind}": bytes([kind])
        + mail(ASK, numbers[kind], design(kind) + place)
        + mail(TO_SENDER, numbers[kind], place)
        + freight(note.pack(1, 0, 1, 0, 0, 256, 64, 0) + b"key")
        + freight(note.pack(0, 0, 1, 9, 0, 256, 0, 4) + b"namework")
        + freight(note.pack(3, 8, 1, 0, 0, 0, 0, 0) + b"no")
        for kind in range(1, 4)
    },
)


# How, number, kind, length, bytes; behind them what is changed of the seal, or how long it is.
def sealed(number, text=b"text", how=0, after=b""):
    return struct.pack("<BHBB", how, number, 3, len(text)) + text + after


write(
    "seals",
    once=sealed(1) + sealed(1) + sealed(3) + sealed(2) + sealed(2),
    none=sealed(5) + sealed(0),
    far=sealed(1) + sealed(200) + sealed(199) + sealed(2) + sealed(0),
    strangers=sealed(1, how=1) + sealed(2, how=2) + sealed(3),
    changed=sealed(1, how=4, after=bytes(23) + b"\1") + sealed(1, how=8, after=b"\x10"),
    bare=sealed(1, text=bytes(24), how=16),
)


# A question with a header: how, kind, number, runs, lock, element, code; runs; a length and data.
PUT, GET, UPDATE, FETCH, COMPARE, LOCK, UNLOCK, REPLY, LIFE, ALIVE = range(10)


def question(kind, runs=(), payload=b"", number=1, lock=1, element=4, how=4, code=0):
    head = struct.pack("<BBBBBBB", how, kind, number, len(runs), lock, element, code)
    places = b"".join(struct.pack("<hH", *run) for run in runs)
    return head + places + bytes([len(payload)]) + payload


write(
    "window",
    puts=b"\0" + question(PUT, [(0, 4), (8, 4)], b"abcdefgh") + question(PUT, [(255, 4)], b"abcd"),
    dynamic=b"\1" + question(PUT, [(0, 4)], b"abcd") + question(GET, [(250, 20)]),
    updates=b"\0"
    + question(UPDATE, [(0, 8)], b"abcdefgh")
    + question(FETCH, [(-4, 8)], b"abcdefgh")
    + question(COMPARE, [(4, 4)], b"abcdefgh"),
    locks=b"\0"
    + question(LOCK)
    + question(LOCK, lock=2, how=5)
    + question(UNLOCK)
    + question(UNLOCK, lock=2),
    transported=b"\0"
    + question(PUT, [(0, 8)], lock=128 + 16)
    + question(GET, [(8, 8)], lock=128)
    + question(PUT, [(250, 8)], lock=128 + 16)
    + question(GET, [(0, 8)], lock=128 + 32),
    replies=b"\0" + question(REPLY, [], b"abcdefgh") + question(REPLY, code=5) + question(LIFE),
    raw=b"\0" + struct.pack("<BH", 0, 4) + b"half" + struct.pack("<BH", 2, 0),
)


# How, kind, request, round, transfer, partitions, first byte; behind them a hello, or a length and bytes.
def told(kind, payload=None, hello=None, to=1, round=1, transfer=0, first=0, how=1):
    head = struct.pack("<BBBBbbB", how, kind, to, round, transfer, 1, first)
    return head + (hello if hello is not None else bytes([len(payload)]) + payload)


P_HELLO, P_WELCOME, P_DECLINE, P_READY, P_DATA, P_FAILED = range(1, 7)
write(
    "partitions",
    data=b"\1" + told(P_DATA, b"x" * 16, to=2) + told(P_DATA, b"y" * 48, to=2, transfer=1, first=16),
    beyond=b"\1" + told(P_DATA, b"x" * 32, to=2, transfer=3, first=48),
    unsound=b"\0"
    + told(P_HELLO, hello=struct.pack("<bBB", 4, 0, 64), how=9)
    + told(P_DATA, b"x", to=2),
    many=b"\0" + told(P_HELLO, hello=struct.pack("<bBB", -1, 16, 64), how=9),
    rounds=b"\1" + told(P_READY, b"") + told(P_FAILED, b"", to=2) + told(P_WELCOME, b"half"),
    collectives=b"\1" + b"".join(told(kind, b"body") for kind in range(7, 14)),
)
