"""What may be said of an exception that no signature knows: Python's own words, and whose line raised it.

Nothing here guesses at a cause: a sentence only says in other words what the exception's type, its message and its call
chain say themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranksafe.localization import Translated
from ranksafe.runs.explain import words
from ranksafe.runs.explain.evidence import Raised
from ranksafe.runs.explain.locate import innermost_user_frame

_INSTALLED = re.compile(r"/(?:site|dist)-packages/(?P<name>[A-Za-z_][\w-]*)")
_STANDARD = re.compile(r"/[Ll]ib/(?:python3[\d.]*/)?(?P<name>[A-Za-z_]\w*)")
_SHORT = 160
_PYTHONS_OWN = frozenset(
    {
        *(
            "KeyError",
            "IndexError",
            "AttributeError",
            "TypeError",
            "NameError",
            "ZeroDivisionError",
        ),
        *("UnboundLocalError", "StopIteration", "RecursionError", "OverflowError"),
    }
)
"""What Python itself raises in a line; anything else may come from compiled code that the line calls."""

_OF_A_REFUSAL = frozenset({"ValueError", "TypeError", "NotImplementedError"})
"""What a library raises of its own will where it is given what it does not take."""


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What a message of Python's own means; named groups fill the sentence."""

    pattern: re.Pattern[str]
    said: Translated


def unlisted(raised: Raised, origin: Raised) -> Translated:
    """What may be said of ``raised``, which began as ``origin``; both with their frames marked."""
    if not raised.type:
        return words.CUT_OFF if raised.frames else words.UNKNOWN
    quoted = quoted_from_worker(raised) if origin is raised else None
    parts = [
        part
        for part in (_meaning(quoted or origin), _raiser(origin, quoted), _became(raised, origin))
        if part
    ]
    if not parts:
        return words.UNKNOWN
    said = parts[0]
    for part in parts[1:]:
        said = words.both(said, part)
    return said


def quoted_from_worker(raised: Raised) -> Raised | None:
    """What a DataLoader worker raised, where ``raised`` only quotes it."""
    cause = raised.cause
    return cause if cause and (cause.where or "").startswith("DataLoader worker") else None


def _meaning(origin: Raised) -> Translated | None:
    text = origin.text.strip().split("\n", 1)[0]
    for meaning in _MEANINGS:
        found = meaning.pattern.search(text)
        if found is not None:
            return meaning.said.filled(**_shortened(found.groupdict()))
    return None


def _shortened(groups: dict[str, str | None]) -> dict[str, str]:
    return {name: (value or "")[:_SHORT] for name, value in groups.items()}


def _raiser(origin: Raised, quoted: Raised | None) -> Translated | None:
    """Whose line raised it: a check of the user's own, the user's line itself, or a package that it calls."""
    own = innermost_user_frame(origin.frames)
    if own is None:
        package = _package(origin.frames[-1].filename) if origin.frames else None
        return _ONLY_PACKAGE.filled(package=package, type=origin.type) if package else None
    if origin.frames[-1] is own:
        if origin.type == "AssertionError" or own.source.startswith("assert"):
            bare = own.source.startswith("assert ") and not origin.message
            return _BARE_ASSERTION.filled(check=own.source[7:_SHORT]) if bare else _OWN_ASSERTION
        if own.source.startswith("raise"):
            return _OWN_CHECK.filled(type=origin.type)
        said = words.RAISED_HERE if origin.type in _PYTHONS_OWN else _IN_LINE
        return said.filled(type=origin.type)
    inner = quoted.frames if quoted is not None and quoted.frames else origin.frames
    package = _package(inner[-1].filename)
    refused = origin.type in _OF_A_REFUSAL and inner[-1].source.startswith("raise ")
    return (_REFUSED if refused else _IN_PACKAGE).filled(package=package) if package else None


def _package(filename: str) -> str | None:
    """The installed package or the module of Python's own that a file is of."""
    path = filename.replace("\\", "/")
    for pattern in (_INSTALLED, _STANDARD):
        names = [found["name"] for found in pattern.finditer(path)]
        if names:
            return names[-1]
    return None


def _became(raised: Raised, origin: Raised) -> Translated | None:
    """How the exception that ended the rank came of the one that is blamed."""
    if raised.group:
        return _OF_A_GROUP.filled(count=len(raised.group), type=origin.type)
    if origin is raised:
        return _IN_WORKER if quoted_from_worker(raised) else None
    if (origin.where or "").startswith("DataLoader worker"):
        return _IN_WORKER
    if origin.where or not raised.type or raised.type == origin.type:
        return None
    return _TURNED_INTO.filled(inner=origin.type, outer=raised.type)


def _means(pattern: str, en: str, zh: str) -> _Meaning:
    return _Meaning(re.compile(r"\A(?:\w+\.)*" + pattern), Translated(en, zh))


_MEANINGS = (
    _means(
        # A message of several words is a program's own, not a key.
        r"KeyError: (?P<key>(?!(?:\S+ ){2}).+)",
        "There is no key {key} in what is looked up.",
        "查找的对象中没有键 {key}。",
    ),
    _means(
        r"AttributeError: 'NoneType' object has no attribute '(?P<name>\w+)'",
        "The object whose {name} is asked for is None: whatever should have made it gave nothing.",
        "要取其 {name} 的对象是 None：本应产生它的代码没有返回结果。",
    ),
    _means(
        r"AttributeError: '(?P<type>[\w.]+)' object has no attribute '(?P<name>\w+)'",
        "A {type} has no {name}: the name is misspelt, it belongs to another version of {type}, or the object is not "
        "what the code takes it for.",
        "{type} 没有 {name}：名称拼写有误、属于 {type} 的其他版本，或该对象并非代码所预期的类型。",
    ),
    _means(
        r"TypeError: (?:'NoneType' object is not|cannot unpack non-iterable NoneType|argument of type 'NoneType')",
        "A value is None where something else is expected.",
        "某个值为 None，而此处需要其他内容。",
    ),
    _means(
        r"TypeError: (?P<name>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        "{name} does not take the argument {argument}: it is misspelt, or the installed version of what defines "
        "{name} is another than the call was written for.",
        "{name} 不接受参数 {argument}：参数名拼写有误，或定义 {name} 的软件包版本与调用代码所针对的不同。",
    ),
    _means(
        r"TypeError: (?P<name>[\w.<>]+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (?P<left>.+)",
        "{name} is called without {left}.",
        "调用 {name} 时缺少 {left}。",
    ),
    _means(
        r"TypeError: (?P<name>[\w.<>]+)\(\) takes (?P<some>.+?) but (?P<given>\d+) (?:was|were) given",
        "{name} takes {some} and is called with {given} (self counts as one).",
        "{name} 的参数要求为“{some}”，而调用给出了 {given} 个（self 也算一个）。",
    ),
    _means(
        r"TypeError: (?:unsupported operand type\(s\) for \S+:|'[<>=]+' not supported between instances of) "
        r"'?(?P<one>[\w.]+)'? and '?(?P<two>[\w.]+)'?",
        "The operands are of types that do not go together: {one} and {two}.",
        "操作数的类型不能一起使用：{one} 与 {two}。",
    ),
    _means(
        r"TypeError: (?P<name>[\w.<>]+)\(\)[^\n]*?argument '?(?P<argument>[\w ()]+?)'? (?:\(position \d+\) )?must be "
        r"(?P<needs>[\w. ]+), not (?P<given>[\w.]+)",
        "{name} needs a {needs} for its argument {argument} and gets a {given}.",
        "{name} 的参数 {argument} 需要 {needs}，而得到的是 {given}。",
    ),
    _means(
        r"TypeError: can only concatenate (?P<one>[\w.]+) \(not \"(?P<two>[\w.]+)\"\) to (?P=one)",
        "A {one} and a {two} are added, which Python does not do: convert the {two} first, in text with an f-string.",
        "{one} 与 {two} 相加，Python 不支持：请先转换 {two}，在文本中可使用 f-string。",
    ),
    _means(
        r"TypeError: (?P<name>[\w.<>]+)\(\) argument after (?P<stars>\*{1,2}) must be (?P<needs>an? [\w ]+|iterable), "
        r"not (?P<given>[\w.]+)",
        "{name} is called with {stars} before a {given}; {stars} needs {needs}.",
        "调用 {name} 时在 {given} 之前使用了 {stars}；{stars} 需要的是 {needs}。",
    ),
    _means(
        r"TypeError: '(?P<type>[\w.]+)' object is not (?P<what>callable|subscriptable|iterable|an iterator"
        r"|a mapping|reversible)",
        "A {type} is used where Python needs something that is {what}: it is not what this line takes it for.",
        "此处需要 {what} 的对象，而得到的是 {type}：它并非该行所预期的内容。",
    ),
    _means(
        r"TypeError: unhashable type: '(?P<type>[\w.]+)'",
        "A {type} cannot be a key of a dict or a member of a set.",
        "{type} 不能作为字典的键或集合的成员。",
    ),
    _means(
        r"TypeError: (?:list|tuple|string) indices must be integers(?: or slices)?, not (?:'?(?P<given>[\w.]+)'?)",
        "A sequence is indexed with a {given}: a dict was expected there, or the data has another form.",
        "用 {given} 作为序列的下标：此处预期的是字典，或数据的结构不同。",
    ),
    _means(
        r"TypeError: expected str, bytes or os\.PathLike object, not (?P<given>\w+)",
        "A path is expected, and a {given} is given: a setting or an environment variable is not set.",
        "此处需要路径，而得到的是 {given}：某个设置或环境变量没有设定。",
    ),
    _means(
        r"TypeError: (?P<name>[\w.]+)\(\) received an invalid combination of arguments - got \((?P<given>[^)]*)\)",
        "{name} does not take arguments of these types: ({given}).",
        "{name} 不接受这些类型的参数：（{given}）。",
    ),
    _means(
        r"TypeError: expected (?P<needs>Tensor) as element (?P<at>\d+) in argument \d+, but got (?P<given>\w+)",
        "Element {at} of the list is a {given} where a {needs} is needed.",
        "列表的第 {at} 个元素是 {given}，而此处需要 {needs}。",
    ),
    _means(
        r"TypeError: sequence item (?P<at>\d+): expected str instance, (?P<given>\w+) found",
        "Texts are joined, and item {at} is a {given}: convert it with str() first.",
        "拼接文本时第 {at} 项是 {given}：请先用 str() 转换。",
    ),
    _means(
        r"TypeError: can't multiply sequence by non-int of type '(?P<given>\w+)'",
        "A list or a text is multiplied by a {given}: a number or a tensor was expected in its place.",
        "用 {given} 乘以列表或文本：此处预期的是数值或张量。",
    ),
    _means(
        r"StopIteration\b",
        "next() was called on an iterator that has nothing left.",
        "对已经耗尽的迭代器调用了 next()。",
    ),
    _means(
        r"ValueError: I/O operation on closed file",
        "A file is used after it was closed.",
        "文件关闭后又被使用。",
    ),
    _means(
        r"ValueError: Sample larger than population",
        "More samples are to be drawn without replacement than there are.",
        "不放回抽样的数量多于样本总数。",
    ),
    _means(
        r"ConnectionRefusedError: |ConnectionError: Error 111 connecting to (?P<address>\S+)\. ",
        "Nothing listens at the address: the server is not started, has ended, or the host or port is another one.",
        "该地址没有服务在监听：服务未启动、已结束，或主机、端口不对。",
    ),
    _means(
        r"TimeoutError: \[Errno 110\] ",
        "The other side did not answer: a wrong host or port, a firewall, or no network.",
        "对方没有应答：主机或端口不对、防火墙，或没有网络。",
    ),
    _means(
        r"ClientError: An error occurred \((?P<code>\w+)\) when calling the (?P<call>\w+) operation: (?P<why>.+)",
        "The cloud storage refused {call} ({code}: {why}): see the name of the bucket and key, and the rights of the "
        "account.",
        "云存储拒绝了 {call}（{code}：{why}）：请检查 bucket 和 key 的名称以及账户权限。",
    ),
    _means(
        r"ZeroDivisionError: ",
        "Something is divided by zero: often a count that is zero, of batches, steps or samples.",
        "除数为零：通常是批次、步数或样本的计数为零。",
    ),
    _means(
        r"RuntimeError: dictionary changed size during iteration",
        "A dict changes while the code goes through it: another thread, or an import that runs meanwhile, adds to it. "
        "The library that does so has to go through a copy.",
        "代码遍历字典时字典发生了变化：另一个线程或此时的导入向其中添加了内容。应由相关库改为遍历其副本。",
    ),
    _means(
        r"TypeError: Object of type (?P<type>\w+) is not JSON serializable",
        "JSON cannot hold a {type}: convert it first.",
        "JSON 不能表示 {type}：请先转换。",
    ),
    _means(
        r"(?:ValueError|TypeError|KeyError): .{0,200}(?:is not a valid argument|are not used by the model"
        r"|[Uu]n(?:recognized|known) (?:argument|keyword|option))",
        "Something is passed that what is called does not take: misspelt, or of another version of it.",
        "传入了被调用者不接受的内容：拼写有误，或属于它的其他版本。",
    ),
    _means(
        r"ValueError: (?:not enough|too many) values to unpack \(expected (?P<count>[\w ]+)",
        "The right side does not have as many values as the line unpacks ({count}).",
        "右侧的值的个数与该行解包的个数（{count}）不同。",
    ),
    _means(
        r"ValueError: (?:could not convert string to (?P<kind>float)|invalid literal for (?P<call>int)\(\) with base "
        r"\d+): (?P<text>.+)",
        "The text {text} is not a number.",
        "文本 {text} 不是数字。",
    ),
    _means(
        r"IndexError: (?P<what>list|tuple|string|deque) (?:assignment )?index out of range",
        "An index is beyond the end of a {what}.",
        "索引超出了 {what} 的末尾。",
    ),
    _means(
        r"IndexError: (?:index (?P<index>-?\d+) is out of bounds for (?:axis|dimension) (?P<axis>\d+) with size "
        r"(?P<size>\d+))",
        "Index {index} is beyond the end: dimension {axis} has the size {size}.",
        "索引 {index} 越界：第 {axis} 维的大小为 {size}。",
    ),
    _means(
        r"(?:JSONDecodeError|JSONLinesReadError): (?P<what>.+)",
        "A text is not valid JSON ({what}): cut off, empty, or something else than JSON.",
        "文本不是有效的 JSON（{what}）：被截断、为空，或根本不是 JSON。",
    ),
    _means(
        r"UnicodeDecodeError: '(?P<name>[\w-]+)' codec can't decode",
        "A file's bytes are not {name}: it has another encoding, is compressed, or is not text.",
        "文件的字节不是 {name} 编码：使用了其他编码、经过压缩，或不是文本。",
    ),
)

_OWN_CHECK = Translated(
    en="A check in the code raised this {type} here on purpose; its message says what it found.",
    zh_cn="代码中的检查在此处主动抛出了该 {type}；它发现的问题见消息。",
)
_OWN_ASSERTION = Translated(
    en="The assertion on this line does not hold.", zh_cn="这一行的断言不成立。"
)
_BARE_ASSERTION = Translated(
    en='The assertion on this line does not hold: "{check}".',
    zh_cn="这一行的断言不成立：“{check}”。",
)
_IN_LINE = Translated(
    en="This line of yours, or compiled code that it calls, raised the {type}.",
    zh_cn="你的这一行，或它所调用的编译代码，抛出了该 {type}。",
)
_IN_PACKAGE = Translated(
    en="It was raised inside {package}, called from this line of yours.",
    zh_cn="它是在你的这一行所调用的 {package} 内部抛出的。",
)
_REFUSED = Translated(
    en="{package}, called from this line of yours, refuses what it is given; its message says what.",
    zh_cn="你的这一行所调用的 {package} 拒绝了传入的内容；原因见消息。",
)
_ONLY_PACKAGE = Translated(
    en="{package} raised this {type}; no line of your own code is in the call chain.",
    zh_cn="{package} 抛出了该 {type}；调用链中没有你自己的代码。",
)
_IN_WORKER = Translated(
    en="It happened in a DataLoader worker, while it made a batch.",
    zh_cn="它发生在 DataLoader worker 准备批次的过程中。",
)
_TURNED_INTO = Translated(
    en="It began as this {inner}, which was then turned into the {outer} that ended the rank.",
    zh_cn="起因是该 {inner}，随后被转换为终止该 rank 的 {outer}。",
)
_OF_A_GROUP = Translated(
    en="It is the first of {count} exceptions that ended together as a group.",
    zh_cn="它是作为异常组一起结束的 {count} 个异常中的第一个。",
)
