#!/usr/bin/env python3
"""A client of the loader, written from docs/loader-protocol.md alone: Python's
standard library, and Ed25519 from RFC 8032 (slow, and fit for tests only).

client.py CASE SOCKET HOST:PORT KEY OTHER-KEY IMAGE RECORD CREDENTIAL
"""
import hashlib, json, os, socket, struct, sys, time

# Ed25519, RFC 8032, section 5.1.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def sha512(data):
    return int.from_bytes(hashlib.sha512(data).digest(), "little")


def add(p, q):
    """Points in extended coordinates: X, Y, Z, T = XY/Z."""
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, point):
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = add(result, point)
        point, number = add(point, point), number >> 1
    return result


def base_point():
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x & 1:
        x = P - x
    return x, y, 1, x * y % P


B = base_point()


def encode(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


class Key:
    def __init__(self, seed):
        digest = hashlib.sha512(seed).digest()
        scalar = int.from_bytes(digest[:32], "little")
        self.scalar = scalar & ((1 << 254) - 8) | 1 << 254
        self.prefix = digest[32:]
        self.public = encode(times(self.scalar, B))

    @staticmethod
    def read(path):
        for line in open(path):
            if line.startswith("secret: "):
                return Key(bytes.fromhex(line.split()[1]))

    def sign(self, message):
        r = sha512(self.prefix + message) % L
        point = encode(times(r, B))
        k = sha512(point + self.public + message) % L
        return point + ((r + k * self.scalar) % L).to_bytes(32, "little")


# RFC 8032, section 7.1, test 2: so that a failure below is not this file's.
TEST = Key(bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
assert TEST.public.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
assert TEST.sign(b"\x72").hex().startswith("92a009a9f0d4cab8720e820b5f642540")

# The protocol.
HELLO, CHALLENGE, REQUEST, ANSWER = 1, 2, 3, 4
LOAD, UNLOAD, LIST, CALL = 1, 2, 3, 4
DONE, REFUSED, NOT_UNDERSTOOD, BUSY = 0, 1, 2, 3


class Closed(Exception):
    pass


def frame(kind, body):
    return struct.pack(">BI", kind, len(body)) + body


def arguments(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack(">I", len(text)) + text + data


class Connection:
    def __init__(self, address, key=None):
        if ":" in address:
            host, port = address.split(":")
            self.socket = socket.create_connection((host, int(port)), 60)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(60)
            self.socket.connect(address)
        self.counter, self.key = 0, key
        if key:
            self.hello(key)

    def hello(self, key, version=1):
        self.send(frame(HELLO, struct.pack(">H", version) + key.public))
        kind, body = self.receive()
        if kind != CHALLENGE:
            raise Closed(farewell(kind, body))
        assert len(body) == 36
        self.nonce = body[:32]

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the reason may still be there to be read

    def exactly(self, count):
        data = b""
        while len(data) < count:
            try:
                piece = self.socket.recv(count - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise Closed("no word")
            data += piece
        return data

    def receive(self):
        kind, length = struct.unpack(">BI", self.exactly(5))
        return kind, self.exactly(length)

    def request(self, operation, body, counter=None, nonce=None, key=None):
        """The bytes of the next request; what is given replaces what is right."""
        self.counter += 1
        counter, nonce, key = counter or self.counter, nonce or self.nonce, key or self.key
        message = b"mullion-loader-request-1\0" + nonce + self.key.public
        message += struct.pack(">QB", counter, operation) + hashlib.sha256(body).digest()
        return frame(REQUEST, struct.pack(">QB", counter, operation) + key.sign(message) + body)

    def answer(self):
        kind, body = self.receive()
        assert kind == ANSWER, kind
        counter, status = struct.unpack(">QB", body[:9])
        (length,) = struct.unpack(">I", body[9:13])
        header, data = json.loads(body[13 : 13 + length]), body[13 + length :]
        if counter == 0:
            raise Closed(header["error"])
        assert counter == self.counter, (counter, self.counter)
        return status, header, data

    def ask(self, operation, header, data=b""):
        self.send(self.request(operation, arguments(header, data)))
        return self.answer()


def farewell(kind, body):
    if kind == ANSWER and body[:8] == bytes(8):
        (length,) = struct.unpack(">I", body[9:13])
        return json.loads(body[13 : 13 + length])["error"]
    return f"a frame of kind {kind}"


def closes(connection, reason, end=False):
    """The loader ends the connection, for this reason."""
    if end:
        connection.socket.shutdown(socket.SHUT_WR)
    try:
        while True:
            connection.answer()
    except Closed as why:
        assert reason in str(why), f"{reason!r} expected: {why}"
    assert connection.socket.recv(1) == b"", "it goes on"


def read(path):
    with open(path, "rb") as file:
        return file.read()


def session(address, key, other, image, record, credential):
    me = Connection(address, key)
    header = {"name": "p.mx", "record": read(record).decode(), "credentials": [read(credential).decode()]}
    status, answer, _ = me.ask(LOAD, header, read(image))
    assert status == DONE, answer
    assert answer["verified"] is True and "add" in answer["exports"], answer
    module = answer["module"]
    status, answer, _ = me.ask(CALL, {"module": module, "export": "add", "arguments": [40, 2**64 - 2]})
    assert (status, answer["result"]) == (DONE, 38), answer
    status, answer, data = me.ask(CALL, {"module": module, "export": "upper", "arguments": [1]}, b"bytes")
    assert (status, answer["result"], data) == (DONE, 6, b"BYTES"), answer
    # A number that is no nonce's: the module is known on another connection of the same key.
    again = Connection(address, key)
    status, answer, _ = again.ask(LIST, {})
    assert [one["module"] for one in answer["modules"]] == [module], answer
    # Refusals are answers, and the connection goes on.
    status, answer, _ = me.ask(LOAD, {"record": header["record"]}, read(image))
    assert status == REFUSED and "may not load" in answer["error"], answer
    assert answer["way_out"] and answer["obstacles"], answer
    for operation, body, word in [
        (9, arguments({}), "no operation"),
        (LIST, b"", "length"),
        (LIST, arguments([]), "object"),
        (UNLOAD, arguments({"module": -1}), "object"),
        (UNLOAD, arguments({"module": module, "more": 1}), "unknown field"),
        (LOAD, b"\xff\xff\xff\xff", "length"),
        (LOAD, arguments({"limits": {"wishes": 3}}), "no limit"),
    ]:
        me.send(me.request(operation, body))
        status, answer, _ = me.answer()
        assert status == NOT_UNDERSTOOD and word in answer["error"], (word, answer)
    for changed in [
        ("record", header["record"].replace("sig", "gis", 1)),
        ("record", header["record"][:-9]),
        ("credentials", [header["credentials"][0].replace("tool", "tolo", 1)]),
        ("credentials", ["nonsense"]),
        ("credentials", header["credentials"] * 65),
    ]:
        status, answer, _ = me.ask(LOAD, {**header, changed[0]: changed[1]}, read(image))
        assert status == REFUSED and answer["error"], answer
    status, answer, _ = me.ask(LOAD, header, read(image)[:-1])
    assert status == REFUSED and "is about the image" in answer["error"], answer
    stranger = Connection(address, other)
    status, answer, _ = stranger.ask(UNLOAD, {"module": module})
    assert status == REFUSED, answer
    status, answer, _ = me.ask(UNLOAD, {"module": module})
    assert status == DONE, answer
    # Two requests on the way at once are answered in their order.
    me.send(me.request(LIST, arguments({})) + me.request(LIST, arguments({})))
    me.counter -= 1
    assert me.answer()[0] == DONE
    me.counter += 1
    assert me.answer()[0] == DONE


def hostile(address, key, other, *_):
    listing = arguments({})
    # Each begins with a good connection, and one thing is wrong.
    me = Connection(address, key)
    request = me.request(LIST, listing)
    me.send(request)
    assert me.answer()[0] == DONE
    me.send(request)  # replayed on the same connection
    closes(me, "was repeated")

    two = Connection(address, key)
    two.send(request)  # replayed on another connection
    closes(two, "signature")
    for wrong in [{"counter": 2}, {"nonce": bytes(32)}, {"key": other}]:
        me = Connection(address, key)
        me.send(me.request(LIST, listing, **wrong))
        closes(me, "repeated, reordered or left out" if "counter" in wrong else "signature")

    me = Connection(address, key)
    first, second = me.request(LIST, listing), me.request(LIST, listing)
    me.send(second + first)  # reordered
    closes(me, "reordered")

    me = Connection(address, key)
    request = bytearray(me.request(LIST, arguments({}) + b"x"))
    request[-1] ^= 1  # another content than the signed one
    me.send(bytes(request))
    closes(me, "signature")
    for cut in [1, 5, 40, len(request) - 1]:
        me = Connection(address, key)
        me.send(me.request(LIST, listing + b"x")[:cut])  # truncated
        closes(me, "within a frame", end=True)

    for garbage, word in [
        (frame(REQUEST, bytes(100)), "not due"),
        (frame(ANSWER, bytes(100)), "not due"),
        (frame(9, b""), "not due"),
        (b"GET / HTTP/1.1\r\n\r\n", "not due"),
        (struct.pack(">BI", HELLO, 2**31), "longer than"),
        (frame(HELLO, bytes(33)), "length"),
        (frame(HELLO, struct.pack(">H", 7) + key.public), "version 7"),
    ]:
        me = Connection(address)
        me.send(garbage)
        closes(me, word)
    for kind, length, word in [(REQUEST, 2**32 - 1, "longer than"), (REQUEST, 72, "length"), (9, 1, "unknown kind")]:
        me = Connection(address, key)
        me.send(struct.pack(">BI", kind, length))
        closes(me, word)
    me = Connection(address, key)
    me.send(frame(HELLO, struct.pack(">H", 1) + key.public))  # a second hello
    closes(me, "not due")
    me = Connection(address, key)
    me.key = Key(bytes(32))
    me.send(me.request(LIST, listing))  # a key that was not announced
    closes(me, "signature")
    for _ in range(200):
        me = Connection(address)
        me.send(os.urandom(64))
    assert Connection(address, key).ask(LIST, {})[0] == DONE


def slow(address, key, other, *_):
    """The loader's patience is 2 s here; who is not done by then is left."""
    silent, half = Connection(address), Connection(address)
    half.send(b"\x01\0\0")
    idle, trickle, deaf = (Connection(address, key) for _ in range(3))
    rest = trickle.request(LIST, arguments({}))
    begin = time.monotonic()
    while time.monotonic() - begin < 6:
        trickle.send(rest[:1])
        rest = rest[1:]
        # Meanwhile others are served.
        assert Connection(address, key).ask(LIST, {})[0] == DONE
        time.sleep(0.25)
    for one in [silent, half, idle, trickle]:
        try:
            while one.socket.recv(4096):
                pass
        except ConnectionResetError:
            pass


case, unix, tcp, *files = sys.argv[1:]
address = tcp if case == "tcp" else unix
run = {"session": session, "tcp": session, "hostile": hostile, "slow": slow}[case]
run(address, Key.read(files[0]), Key.read(files[1]), *files[2:])
print(case, "good")
