"""Messages of Python's own (CPython 3.10 to 3.13), and of torch where it checks arguments as Python does."""

from __future__ import annotations

from ranksafe.runs.explain.meanings.meaning import Meaning, means

MEANINGS: tuple[Meaning, ...] = (
    means(
        # A message of several words is a program's own, not a key.
        r"KeyError: (?P<key>(?!(?:\S+ ){2}).+)",
        "There is no key {key} in what is looked up.",
        "查找的对象中没有键 {key}。",
    ),
    means(
        r"AttributeError: 'NoneType' object has no attribute '(?P<name>\w+)'",
        "The object whose {name} is asked for is None: whatever should have made it gave nothing.",
        "要取其 {name} 的对象是 None：本应产生它的代码没有返回结果。",
    ),
    means(
        r"AttributeError: '(?P<type>str|tuple|list|dict|int|float)' object has no attribute "
        r"'(?P<name>to|cuda|shape|size|device|dtype|detach|backward|numel)'",
        "A {type} is used as a tensor ({name}): the batch or the model's output has another form than the code takes "
        "it for; take the tensors out of it first.",
        "把 {type} 当作张量使用（{name}）：批次或模型输出的结构与代码预期不同；请先取出其中的张量。",
    ),
    means(
        r"TypeError: '[<>=]+' not supported between instances of '(?P<one>int|float|str)' and '(?P<two>int|float|str)'",
        "A number is compared with a text ({one} and {two}): a setting was read as text. YAML reads 1e-4 as text "
        "(write 1.0e-4), and arguments need type=float.",
        "把数字与文本比较（{one} 与 {two}）：某个设置被读成了文本。YAML 会把 1e-4 读成文本（请写 1.0e-4），命令行参数"
        "需要 type=float。",
    ),
    means(
        r"AttributeError: '(?P<type>[\w.]+)' object has no attribute '(?P<name>\w+)'",
        "A {type} has no {name}: the name is misspelt, it belongs to another version of {type}, or the object is not "
        "what the code takes it for.",
        "{type} 没有 {name}：名称拼写有误、属于 {type} 的其他版本，或该对象并非代码所预期的类型。",
    ),
    means(
        r"TypeError: (?:'NoneType' object is not|cannot unpack non-iterable NoneType|argument of type 'NoneType')",
        "A value is None where something else is expected.",
        "某个值为 None，而此处需要其他内容。",
    ),
    means(
        r"TypeError: (?P<name>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        "{name} does not take the argument {argument}: it is misspelt, or the installed version of what defines "
        "{name} is another than the call was written for.",
        "{name} 不接受参数 {argument}：参数名拼写有误，或定义 {name} 的软件包版本与调用代码所针对的不同。",
    ),
    means(
        r"TypeError: (?P<name>[\w.<>]+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: (?P<left>.+)",
        "{name} is called without {left}.",
        "调用 {name} 时缺少 {left}。",
    ),
    means(
        r"TypeError: (?P<name>[\w.<>]+)\(\) takes (?P<some>.+?) but (?P<given>\d+) (?:was|were) given",
        "{name} takes {some} and is called with {given} (self counts as one).",
        "{name} 的参数要求为“{some}”，而调用给出了 {given} 个（self 也算一个）。",
    ),
    means(
        r"TypeError: (?:unsupported operand type\(s\) for \S+:|'[<>=]+' not supported between instances of) "
        r"'?(?P<one>[\w.]+)'? and '?(?P<two>[\w.]+)'?",
        "The operands are of types that do not go together: {one} and {two}.",
        "操作数的类型不能一起使用：{one} 与 {two}。",
    ),
    means(
        r"TypeError: (?P<name>[\w.<>]+)\(\)[^\n]*?argument '?(?P<argument>[\w ()]+?)'? (?:\(position \d+\) )?must be "
        r"(?P<needs>[\w.]+), (?:not|but got) (?P<given>[\w.]+)",
        "{name} needs a {needs} for its argument {argument} and gets a {given}.",
        "{name} 的参数 {argument} 需要 {needs}，而得到的是 {given}。",
    ),
    means(
        r"TypeError: (?P<name>[\w.<>]+)\(\)[^\n]*?argument '?(?P<argument>[\w ()]+?)'? (?:\(position \d+\) )?must be "
        r"(?P<needs>[\w. ]+), (?:not|but found element of type|but got) (?P<given>[\w.]+)",
        "{name} needs {needs} for its argument {argument} and gets {given}.",
        "{name} 的参数 {argument} 需要 {needs}，而得到的是 {given}。",
    ),
    means(
        r"TypeError: can only concatenate (?P<one>[\w.]+) \(not \"(?P<two>[\w.]+)\"\) to (?P=one)",
        "A {one} and a {two} are added, which Python does not do: convert the {two} first, in text with an f-string.",
        "{one} 与 {two} 相加，Python 不支持：请先转换 {two}，在文本中可使用 f-string。",
    ),
    means(
        r"TypeError: (?P<name>[\w.<>]+)\(\) argument after (?P<stars>\*{1,2}) must be (?P<needs>an? [\w ]+|iterable), "
        r"not (?P<given>[\w.]+)",
        "{name} is called with {stars} before a {given}; {stars} needs {needs}.",
        "调用 {name} 时在 {given} 之前使用了 {stars}；{stars} 需要的是 {needs}。",
    ),
    means(
        r"TypeError: Value after \* must be an iterable, not (?P<given>[\w.]+)",
        "A value of type {given} is unpacked with *, which needs a tuple or a list: args=(x) is x itself, args=(x,) "
        "is a tuple with x.",
        "用 * 解包了 {given}，而它需要元组或列表：args=(x) 就是 x 本身，args=(x,) 才是含 x 的元组。",
    ),
    means(
        r"TypeError: '(?P<type>[\w.]+)' object is not (?P<what>callable|subscriptable|iterable|an iterator"
        r"|a mapping|reversible)",
        "A {type} is used where Python needs something that is {what}: it is not what this line takes it for.",
        "此处需要 {what} 的对象，而得到的是 {type}：它并非该行所预期的内容。",
    ),
    means(
        r"TypeError: unhashable type: '(?P<type>[\w.]+)'",
        "A {type} cannot be a key of a dict or a member of a set.",
        "{type} 不能作为字典的键或集合的成员。",
    ),
    means(
        r"TypeError: (?:list|tuple|string) indices must be integers(?: or slices)?, not (?:'?(?P<given>[\w.]+)'?)",
        "A sequence is indexed with a {given}: a dict was expected there, or the data has another form.",
        "用 {given} 作为序列的下标：此处预期的是字典，或数据的结构不同。",
    ),
    means(
        r"TypeError: expected str, bytes or os\.PathLike object, not (?P<given>\w+)",
        "A path is expected, and a {given} is given: a setting or an environment variable is not set.",
        "此处需要路径，而得到的是 {given}：某个设置或环境变量没有设定。",
    ),
    means(
        r"TypeError: (?P<name>[\w.]+)\(\) received an invalid combination of arguments - got \((?P<given>[^)]*)\)",
        "{name} does not take arguments of these types: ({given}).",
        "{name} 不接受这些类型的参数：（{given}）。",
    ),
    means(
        r"TypeError: expected (?P<needs>Tensor) as element (?P<at>\d+) in argument \d+, but got (?P<given>\w+)",
        "Element {at} of the list is a {given} where a {needs} is needed.",
        "列表的第 {at} 个元素是 {given}，而此处需要 {needs}。",
    ),
    means(
        r"TypeError: sequence item (?P<at>\d+): expected str instance, (?P<given>\w+) found",
        "Texts are joined, and item {at} is a {given}: convert it with str() first.",
        "拼接文本时第 {at} 项是 {given}：请先用 str() 转换。",
    ),
    means(
        r"TypeError: can't multiply sequence by non-int of type '(?P<given>\w+)'",
        "A list or a text is multiplied by a {given}: a number or a tensor was expected in its place.",
        "用 {given} 乘以列表或文本：此处预期的是数值或张量。",
    ),
    means(
        r"StopIteration\b",
        "next() was called on an iterator that has nothing left.",
        "对已经耗尽的迭代器调用了 next()。",
    ),
    means(
        r"ValueError: I/O operation on closed file",
        "A file is used after it was closed.",
        "文件关闭后又被使用。",
    ),
    means(
        r"ValueError: Sample larger than population",
        "More samples are to be drawn without replacement than there are.",
        "不放回抽样的数量多于样本总数。",
    ),
    means(
        r"ZeroDivisionError: ",
        "Something is divided by zero: often a count that is zero, of batches, steps or samples.",
        "除数为零：通常是批次、步数或样本的计数为零。",
    ),
    means(
        r"RuntimeError: dictionary changed size during iteration",
        "A dict changes while the code goes through it: another thread, or an import that runs meanwhile, adds to it. "
        "The library that does so has to go through a copy.",
        "代码遍历字典时字典发生了变化：另一个线程或此时的导入向其中添加了内容。应由相关库改为遍历其副本。",
    ),
    means(
        r"TypeError: Object of type (?P<type>\w+) is not JSON serializable",
        "JSON cannot hold a {type}: convert it first.",
        "JSON 不能表示 {type}：请先转换。",
    ),
    means(
        r"(?:ValueError|TypeError|KeyError): .{0,200}(?:is not a valid argument|are not used by the model"
        r"|[Uu]n(?:recognized|known) (?:argument|keyword|option))",
        "Something is passed that what is called does not take: misspelt, or of another version of it.",
        "传入了被调用者不接受的内容：拼写有误，或属于它的其他版本。",
    ),
    means(
        r"ValueError: (?:not enough|too many) values to unpack \(expected (?P<count>[\w ]+)",
        "The right side does not have as many values as the line unpacks ({count}).",
        "右侧的值的个数与该行解包的个数（{count}）不同。",
    ),
    means(
        r"ValueError: (?:could not convert string to (?P<kind>float)|invalid literal for (?P<call>int)\(\) with base "
        r"\d+): (?P<text>.+)",
        "The text {text} is not a number.",
        "文本 {text} 不是数字。",
    ),
    means(
        r"IndexError: (?P<what>list|tuple|string|deque) (?:assignment )?index out of range",
        "An index is beyond the end of a {what}.",
        "索引超出了 {what} 的末尾。",
    ),
    means(
        r"IndexError: (?:index (?P<index>-?\d+) is out of bounds for (?:axis|dimension) (?P<axis>\d+) with size "
        r"(?P<size>\d+))",
        "Index {index} is beyond the end: dimension {axis} has the size {size}.",
        "索引 {index} 越界：第 {axis} 维的大小为 {size}。",
    ),
    means(
        r"TypeError: object of type '(?P<type>[\w.]+)' has no len\(\)",
        "The length of a {type} is asked for, and it has none.",
        "要取 {type} 的长度，而它没有长度。",
    ),
    means(
        r"TypeError: '(?P<type>[\w.]+)' object does not support item (?P<what>assignment|deletion)",
        "An element of a {type} is to be changed, and it cannot be.",
        "要修改 {type} 的元素，而它不支持修改。",
    ),
    means(
        r"TypeError: unsupported format string passed to (?P<type>[\w.]+)\.__format__",
        "A {type} is put into a text with a format for numbers: use .item() for a tensor, and see why it is no number.",
        "用数字格式把 {type} 放入文本：张量请用 .item()，并查明它为何不是数字。",
    ),
    means(
        r"TypeError: (?P<name>int|float)\(\) argument must be a string[^\n]*, not '(?P<given>[\w.]+)'",
        "{name}() is given a {given}: a setting or a value is missing.",
        "{name}() 得到的是 {given}：缺少某个设置或值。",
    ),
    means(
        r"ValueError: (?P<name>max|min)\(\) (?:arg is an empty sequence|iterable argument is empty)",
        "{name}() is asked of nothing: the list is empty here.",
        "对空序列调用了 {name}()：此处的列表为空。",
    ),
    means(
        r"ValueError: (?:list\.remove\(x\): x not in list|(?P<what>.{1,60}) is not in list)",
        "What is looked for is not in the list.",
        "所查找的内容不在列表中。",
    ),
    means(
        r"ValueError: (?:math domain error|expected a (?:positive|nonnegative) input)",
        "A function of the math module is given a number that it is not defined for, such as the logarithm of 0.",
        "math 模块的函数得到了没有定义的数值，例如 0 的对数。",
    ),
    means(
        r"OSError: \[Errno (?:99|101|113)\] ",
        "The address cannot be reached from here: a wrong host or interface, a firewall, or no network.",
        "从此处无法到达该地址：主机或网卡不对、防火墙，或没有网络。",
    ),
    means(
        r"OSError: \[Errno (?:116|5)\] ",
        "The file system, often a network one, lost the file or could not read it: see whether it is there on this "
        "machine, and whether another process replaced or deleted it.",
        "文件系统（常为网络文件系统）丢失了文件或无法读取：请查看该文件在此机器上是否存在，"
        "以及是否被其他进程替换或删除。",
    ),
)
