"""Messages of what programs use around the training: files, servers, configurations, numpy, processes."""

from __future__ import annotations

from ranksafe.runs.explain.meanings.meaning import Meaning, means

MEANINGS: tuple[Meaning, ...] = (
    means(
        r"(?:OSError|IOError|RuntimeError|ValueError|AssertionError|Exception): (?P<what>[^\n]{0,80}?"
        r"(?:not found|does not exist|doesn't exist|[Nn]o such file(?: or directory)?|[Cc]annot find"
        r"|could not be found)"
        r"[^\w/.~]{1,3}(?P<path>[\w.~-]*/[^\s'\"]+))",
        "A file or folder is not there: {path}; relative paths start at the working directory.",
        "文件或文件夹不存在：{path}；相对路径从工作目录算起。",
    ),
    means(
        r"ValueError: autodetected range of \[(?:nan|-?inf), (?:nan|-?inf)\] is not finite",
        "A histogram is asked of values that are NaN or infinite: training broke down before this line.",
        "对含有 NaN 或无穷的数值求直方图：训练在此行之前就已失控。",
    ),
    means(
        r"ValueError: y should be a 1d array, got an array of shape \((?P<rows>\d+), (?P<columns>\d+)\)",
        "The metric takes one score for each sample, and gets {columns}: pass those of one class (scores[:, 1]), or "
        "the predicted class (argmax).",
        "该指标每个样本只接受一个分数，而得到了 {columns} 个：请传入某一类的分数（scores[:, 1]）"
        "或预测的类别（argmax）。",
    ),
    means(
        r"ValueError: Target is multiclass but average='binary'",
        "There are more than two classes, and the metric is that of two: choose average='macro', 'micro' or "
        "'weighted'.",
        "类别多于两个，而所用的指标只适用于两类：请选择 average='macro'、'micro' 或 'weighted'。",
    ),
    means(
        r"ConnectionRefusedError: |\w*Error: [^\n]*(?:Error 111 connecting to|\[Errno 111\] Connection refused)",
        "Nothing listens at the address: the server is not started, has ended, or the host or port is another one.",
        "该地址没有服务在监听：服务未启动、已结束，或主机、端口不对。",
    ),
    means(
        r"TimeoutError: \[Errno 110\] ",
        "The other side did not answer: a wrong host or port, a firewall, or no network.",
        "对方没有应答：主机或端口不对、防火墙，或没有网络。",
    ),
    means(
        r"ClientError: An error occurred \((?P<code>\w+)\) when calling the (?P<call>\w+) operation: (?P<why>.+)",
        "The cloud storage refused {call} ({code}: {why}): see the name of the bucket and key, and the rights of the "
        "account.",
        "云存储拒绝了 {call}（{code}：{why}）：请检查 bucket 和 key 的名称以及账户权限。",
    ),
    means(
        r"(?:JSONDecodeError|JSONLinesReadError): (?P<what>.+)",
        "A text is not valid JSON ({what}): cut off, empty, or something else than JSON.",
        "文本不是有效的 JSON（{what}）：被截断、为空，或根本不是 JSON。",
    ),
    means(
        r"UnicodeDecodeError: '(?P<name>[\w-]+)' codec can't decode",
        "A file's bytes are not {name}: it has another encoding, is compressed, or is not text.",
        "文件的字节不是 {name} 编码：使用了其他编码、经过压缩，或不是文本。",
    ),
    means(
        r"ValueError: (?:zero-size array to reduction operation (?P<name>\w+) which has no identity"
        r"|need at least one array to (?:concatenate|stack))",
        "An array or a list of arrays is empty here: nothing was collected before.",
        "此处的数组或数组列表为空：之前没有收集到任何内容。",
    ),
    means(
        r"ValueError: Cannot take a larger sample than population when 'replace=False'",
        "More samples are to be drawn without replacement than there are.",
        "不放回抽样的数量多于样本总数。",
    ),
    means(
        r"ValueError: (?:Object arrays cannot be loaded when allow_pickle=False|Cannot load file containing pickled "
        r"data)",
        "The file holds Python objects, which numpy loads only with allow_pickle=True (for files that are trusted), or "
        "it is no array file at all.",
        "文件中含有 Python 对象，numpy 只有在 allow_pickle=True 时才会加载（仅用于可信文件），或它根本不是数组文件。",
    ),
    means(
        r"ValueError: (?:mmap length is greater than filesize|cannot mmap an empty file)",
        "A file is shorter than what is to be read from it: cut off, or still being written.",
        "文件比要读取的内容短：被截断，或仍在写入。",
    ),
    means(
        r"KeyError: [\"'](?:\[(?P<names>[^\]]+)\] not in index|None of \[(?P<index>.+)\] are in the \[(?:columns|"
        r"index)\])",
        "The table does not have these columns or rows: it was made by another version of the code, or names differ.",
        "表格中没有这些列或行：由其他版本的代码生成，或名称不同。",
    ),
    means(
        r"(?:Empty|Full)\b|BrokenBarrierError\b",
        "A thread or process waited for another one of the program in vain: that one is slow, or has ended.",
        "线程或进程徒劳地等待程序中的另一个线程或进程：它太慢，或已经结束。",
    ),
    means(
        r"(?:TimeoutError|ReadTimeout|ConnectTimeout|timeout)\b",
        "Something did not answer in the time that it was given.",
        "在规定时间内没有得到应答。",
    ),
    means(
        r"(?:RemoteDisconnected|ProtocolError|IncompleteRead|ChunkedEncodingError): ",
        "The connection to a server broke in the middle of an answer: try again, and make downloads retry.",
        "与服务器的连接在应答过程中断开：请重试，并让下载自动重试。",
    ),
    means(
        r"HTTPError: (?:429 |HTTP Error 429)",
        "The server refuses more requests for now (429): too many in a short time, often from every rank at once. Let "
        "one rank ask and share the answer.",
        "服务器暂时拒绝更多请求（429）：短时间内请求过多，常见于每个 rank 同时请求。请只让一个 rank 请求并共享结果。",
    ),
    means(
        r"HTTPError: (?:HTTP Error )?(?P<status>[45]\d\d)",
        "A server answered with the HTTP status {status}.",
        "服务器返回 HTTP 状态 {status}。",
    ),
    means(
        r"(?:SSLCertVerificationError|SSLError|URLError): [^\n]*CERTIFICATE_VERIFY_FAILED",
        "The certificate of a server is not trusted here: a proxy that opens connections, or missing root "
        "certificates.",
        "此处不信任服务器的证书：有拦截连接的代理，或缺少根证书。",
    ),
    means(
        r"(?:OperationalError|ServerSelectionTimeoutError|NoBrokersAvailable|EndpointConnectionError"
        r"|NewConnectionError|MaxRetryError|ConnectionError): [^\n]*(?i:connect|reach|broker|retries|no servers)",
        "A server that the program needs could not be reached.",
        "无法连接程序所需的服务器。",
    ),
    means(
        r"InstantiationException: (?P<why>[^\n]+)",
        "Hydra could not build the object that the configuration names: {why}",
        "Hydra 无法构建配置所指定的对象：{why}",
    ),
    means(
        r"ConfigKeyError: Key '(?P<key>[^']+)' (?:not in|is not in struct)",
        "The configuration has no key {key}.",
        "配置中没有键 {key}。",
    ),
    means(
        r"AttributeError: cannot assign module before Module\.__init__\(\) call",
        "A layer is set before super().__init__() was called: call it first.",
        "在调用 super().__init__() 之前就设置了层：请先调用它。",
    ),
    means(
        r"TypeError: cannot assign '(?P<given>[\w.]+)' as parameter '(?P<name>\w+)'",
        "{name} is a parameter of the module, and a plain {given} is assigned to it: wrap it in nn.Parameter, or copy "
        "into it under torch.no_grad().",
        "{name} 是模块的参数，而赋给它的是普通的 {given}：请用 nn.Parameter 包装，或在 torch.no_grad() 下复制进去。",
    ),
    means(
        r"AssertionError: can only test a child process",
        "A process object was used in another process than the one that started it: DataLoader workers that were "
        "copied by a fork, and harmless where training went on.",
        "在并非其父进程的进程中使用了进程对象：fork 复制了 DataLoader worker；若训练继续则无害。",
    ),
)
