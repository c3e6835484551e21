"""Topics of a hub: keys whose messages are values of one type."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic, Optional, Protocol, TypeVar, Union

import paceline

from ._arguments import instance, keywords, plain, some_plain, text, wrong
from ._contain import failure_of
from ._errors import InvalidError
from ._message import HeadersLike, Message, Receipt
from ._subscriptions import RestartHook, TopicSettings
from ._task import PermanentFailure
from ._typing import Unpack

T = TypeVar("T")


class Codec(Protocol[T]):
    """Turns values into bytes and back. Several threads may use it at once."""

    def encode(self, value: T) -> bytes: ...

    def decode(self, payload: bytes) -> T: ...


class Json:
    """What ``json`` reads and writes."""

    def encode(self, value: Any) -> bytes:
        return json.dumps(value, separators=(",", ":")).encode()

    def decode(self, payload: bytes) -> Any:
        if not isinstance(payload, (str, bytes, bytearray)):
            raise wrong("payload", payload, "bytes")
        return json.loads(payload)


class Topic(Generic[T]):
    """A key, or all keys that a pattern matches, with values of one type; see ``Hub.topic``. Any thread."""

    def __init__(self, hub: paceline.Hub, pattern: str, codec: Codec[T]) -> None:
        text("pattern", pattern)
        for what in ("encode", "decode"):
            if not callable(getattr(codec, what, None)):
                raise wrong("codec", codec, "something with encode and decode, as paceline.Json()")
        self._hub = hub
        self._codec = codec
        #: As it was given.
        self.pattern = pattern

    def publish(
        self,
        value: T,
        key: Union[paceline.Key, str, None] = None,
        headers: Optional[HeadersLike] = None,
        priority: str = "normal",
    ) -> Receipt:
        """As ``Hub.publish``, with the topic's own key, or with this one if it has wildcards; that is not
        compared with the pattern. What the codec raises is raised."""
        payload = self._codec.encode(value)
        return self._hub.publish(self.pattern if key is None else key, payload, headers, priority)

    async def publish_async(
        self,
        value: T,
        key: Union[paceline.Key, str, None] = None,
        headers: Optional[HeadersLike] = None,
        priority: str = "normal",
    ) -> Receipt:
        """As ``publish``, and as ``Hub.publish_async``."""
        payload, own = self._codec.encode(value), self.pattern if key is None else key
        return await self._hub.publish_async(own, payload, headers, priority)

    def subscribe(
        self,
        handler: Optional[Callable[[T, Message], object]] = None,
        *,
        factory: Optional[Callable[[], Callable[[T, Message], object]]] = None,
        on_restart: Optional[RestartHook] = None,
        **settings: Unpack[TopicSettings],
    ) -> paceline.Subscription:
        """As ``Hub.subscribe``, for a handler that is no coroutine function: it is called with the value and its
        message, and so is what a ``factory`` makes, or ``on_restart`` returns. A message that cannot be decoded is not
        tried again, and the handler is not called."""
        keywords(Topic.subscribe, settings, TopicSettings)
        some_plain("factory", factory)
        some_plain("on_restart", on_restart)

        def decoding(handler: Optional[Callable[[T, Message], object]]) -> Callable[[Message], None]:
            called = plain("handler", handler)

            def take(message: Message) -> None:
                called(self.decode(message), message)

            return take

        def restarted(raised: Optional[BaseException], count: int) -> object:
            made: Any = on_restart(raised, count) if on_restart is not None else None
            return decoding(made) if callable(made) else made

        own: dict[str, Any] = {**settings, "on_restart": None if on_restart is None else restarted}
        if factory is None:
            return self._hub.subscribe(self.pattern, decoding(handler), **own)
        if handler is not None:
            raise InvalidError("handler is given beside a factory, which makes it")
        make = factory
        own["factory"] = lambda: decoding(make())
        made: paceline.Subscription = self._hub.subscribe(self.pattern, **own)
        return made

    def decode(self, message: Message) -> T:
        """The value of a message that was pulled. Raises PermanentFailure: it has none."""
        instance("message", message, Message)
        try:
            return self._codec.decode(message.payload)
        except Exception as raised:
            raise PermanentFailure(f"cannot be decoded: {failure_of(raised)}") from raised
