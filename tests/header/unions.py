class Either(c.Union):
    """``pace_either_t``"""

    _fields_ = [
        ("number", c.c_uint64),
        ("bytes", c.c_void_p),
    ]


class One2Range(c.Structure):
    """``range`` of ``_2`` of ``pace_one_t``"""

    _fields_ = [
        ("low", c.c_int32),
        ("high", c.c_int32),
    ]


class One2(c.Union):
    """``_2`` of ``pace_one_t``"""

    _fields_ = [
        ("mean", c.c_double),
        ("range", One2Range),
    ]


class OneLast(c.Union):
    """``last`` of ``pace_one_t``"""

    _fields_ = [
        ("yes", c.c_bool),
    ]


class One(c.Structure):
    """``pace_one_t``"""

    _anonymous_ = ("_2",)
    _fields_ = [
        ("kind", c.c_uint32),
        ("either", Either),
        ("_2", One2),
        ("last", OneLast * 2),
    ]
