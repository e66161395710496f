"""Hubs and trackers that refuse to let a run in: no login, an expired token, no right to a resource."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "missing-credentials",
        # Amazon S3's and its likes' error codes, botocore's words, urllib's and requests' status lines.
        r"\bExpiredToken\b|\bInvalidAccessKeyId\b|\bAccessDenied\b|NoCredentialsError|Unable to locate credentials"
        r"|\AHTTPError: (?:HTTP Error )?40[13](?:: (?:Forbidden|Unauthorized)| Client Error)",
        raised_only=True,
        plain=True,
        en="A server refuses the request: the login or token that is used is missing, has expired or has no right to "
        "this. Renew it where the run is; what runs for days needs one that is renewed by itself.",
        zh="服务器拒绝了请求：所用的登录信息或令牌缺失、过期或没有权限。请在运行所在处更新；"
        "运行数日的任务需要会自动更新的令牌。",
    ),
    signature(
        "missing-credentials",
        # wandb 0.12 to 0.22: "wandb: ERROR api_key not configured (no-tty)", "wandb.errors.UsageError: …"; the
        # server's answers: wandb/wandb#2966, wandb/wandb#7783.
        r"api_key not configured \(no-tty\)"
        r"|Error while calling W&B API: permission denied \(<Response \[(?P<status>40[13])\]>\)"
        r"|wandb\.errors(?:\.errors)?\.AuthenticationError|The API key you provided is either invalid or missing"
        r"|wandb: ERROR failed to upsert bucket: returned error (?P<upsert>40[13])",
        plain=True,
        en="Weights & Biases does not let this run in: no API key on this machine, or one that is wrong, expired or "
        "without the right to the project. Run `wandb login --relogin` there or set WANDB_API_KEY; WANDB_MODE=offline "
        "trains without it.",
        zh="Weights & Biases 拒绝了此次运行：本机没有 API key，或 key 错误、过期、没有项目权限。请在该机器上运行 "
        "`wandb login --relogin` 或设置 WANDB_API_KEY；WANDB_MODE=offline 可离线训练。",
    ),
    signature(
        "missing-credentials",
        # huggingface_hub 1.x, utils/_http.py and errors.py.
        r"Cannot access gated repo for url (?P<url>\S+?)\.?(?:\s|$)|\bGatedRepoError\b"
        r"|You are trying to access a gated repo",
        plain=True,
        en="This Hugging Face repository is gated[[ ({url})]]: ask for access on its page, then log in on this "
        "machine with "
        "`hf auth login` or set HF_TOKEN.",
        zh="该 Hugging Face 仓库需要授权[[（{url}）]]：请在其页面申请访问，然后在本机用 `hf auth login` 登录或设置 "
        "HF_TOKEN。",
    ),
    signature(
        "missing-credentials",
        # huggingface_hub 0.x (requests) and 1.x (httpx) word the status differently.
        r"401 Client Error: Unauthorized for url: (?P<url>https://huggingface\.co/\S+)"
        r"|Client error '401 Unauthorized' for url '(?P<address>https://huggingface\.co/[^']+)'"
        r"|Invalid user token\.|Invalid credentials in Authorization header"
        r"|Token is required \(.token=True.\), but no token found",
        plain=True,
        en="The Hugging Face Hub refuses the token[[ for {url}]][[ for {address}]]: it is missing, wrong or expired. "
        "Log in again on this "
        "machine (`hf auth login`) or set HF_TOKEN; a stale HF_TOKEN goes before the saved login.",
        zh="Hugging Face Hub 拒绝了令牌[[（{url}）]][[（{address}）]]：缺失、错误或已过期。请在本机重新登录（`hf auth "
        "login`）或设置 HF_TOKEN；"
        "过期的 HF_TOKEN 会优先于已保存的登录。",
    ),
    signature(
        "missing-credentials",
        # botocore: exceptions.py; google-auth: exceptions.py.
        r"NoCredentialsError: Unable to locate credentials|An error occurred \((?P<aws>ExpiredToken\w*"
        r"|InvalidAccessKeyId"
        r"|RequestExpired|InvalidToken)\) when calling|DefaultCredentialsError: |RefreshError: .*(?:expired|revoked"
        r"|[Rr]eauthentication)",
        plain=True,
        en="The cloud storage refuses the credentials[[ ({aws})]], or there are none. Log in again on this machine, "
        "and make sure that the "
        "login outlives the run.",
        zh="云存储拒绝了凭据[[（{aws}）]]，或没有凭据。请在本机重新登录，并确保登录的有效期长于运行时间。",
    ),
    signature(
        "missing-credentials",
        # comet_ml, neptune, mlflow.
        r"Comet\.ml requires an API key|NeptuneInvalidApiTokenException|NeptuneMissingApiTokenException"
        r"|MlflowException: API request to endpoint .* failed with error code (?P<status>40[13])",
        plain=True,
        en="The experiment tracker does not let this run in[[ (status {status})]]: no valid API token. Set its API "
        "token on this machine, or switch "
        "the tracker off.",
        zh="实验跟踪服务拒绝了此次运行[[（状态 {status}）]]：没有有效的 API token。请在本机设置其 API token，"
        "或关闭跟踪。",
    ),
    signature(
        "tracker-lost",
        # wandb/wandb#6449, wandb/wandb#6201.
        r"\A(?:BrokenPipeError|ConnectionResetError|ConnectionRefusedError|EOFError)\b",
        frames=r"/wandb/",
        plain=True,
        raised_only=True,
        en="The connection to Weights & Biases' own helper process broke: it was killed, or ended before the run. "
        "WANDB_MODE=offline trains without it.",
        zh="与 Weights & Biases 自身的辅助进程的连接中断：该进程被终止，或先于运行结束。WANDB_MODE=offline "
        "可离线训练。",
    ),
    signature(
        "missing-credentials",
        # wandb 0.10 to 0.22, sdk/wandb_login.py and apikey.py.
        r"API key must be (?:at least )?(?P<needs>\d+)\+? characters(?: long)?, yours was (?P<given>\d+)",
        raised_only=True,
        plain=True,
        en="What is given to Weights & Biases as its API key has {given} characters where {needs} are needed: a "
        "placeholder that was not filled in, or a cut-off copy. WANDB_MODE=offline trains without it.",
        zh="提供给 Weights & Biases 的 API key 有 {given} 个字符，而需要 {needs} 个：占位符没有被替换，或复制不完整。"
        "WANDB_MODE=offline 可离线训练。",
    ),
    signature(
        "tracker-lost",
        # wandb 0.13 to 0.22, wandb_init.py and mailbox.
        r"CommError: (?:Run initialization has timed out after (?P<seconds>[\d.]+) sec|Error communicating with wandb"
        r"|Network error|It appears that you do not have permission|.*(?:timed out|ConnectionError))"
        r"|wandb: Network error \([^)]*\), entering retry loop\Z",
        raised_only=True,
        plain=True,
        en="Weights & Biases could not be reached[[ within {seconds} s]]: no network on this machine, a proxy, or a "
        "slow answer. WANDB_MODE=offline trains without it (wandb sync sends the run later); "
        "wandb.Settings(init_timeout=…) waits longer.",
        zh="[[在 {seconds} 秒内]]无法连接 Weights & Biases：本机没有网络、代理问题或响应过慢。WANDB_MODE=offline "
        "可离线训练（之后用 wandb sync 上传）；wandb.Settings(init_timeout=…) 可延长等待。",
    ),
    signature(
        "server-unreachable",
        # requests and urllib3, as raised: a server of the program's own, which nothing says was asked for a download.
        r"\A\w*(?:ConnectionError|MaxRetryError): HTTPS?ConnectionPool\(host='(?P<host>[^']+)', port=(?P<port>\d+)\): "
        r"Max retries exceeded with url: (?P<path>\S+) \(Caused by [^\n]*?(?P<why>Connection refused|timed out"
        r"|Name or service not known|No route to host|Network is unreachable)",
        plain=True,
        en="The server at {host}:{port} did not answer ({path}: {why}): it does not run, has another address, or "
        "cannot be reached from this machine. What the run does not need (metrics, say) should be tried and given "
        "up, so that the training goes on.",
        zh="{host}:{port} 处的服务器没有应答（{path}：{why}）：它没有运行、地址不同，或从本机无法到达。"
        "运行并非必需的内容（例如指标）应在失败后放弃，使训练继续。",
    ),
    signature(
        "no-network",
        # huggingface_hub, transformers; urllib3's MaxRetryError as raised.
        r"We couldn't connect to '(?P<address>https?://[^']+)'|LocalEntryNotFoundError|offline mode is enabled"
        r"|\A\w*(?:ConnectionError|MaxRetryError|SSLError|ProxyError): .*Max retries exceeded with url",
        plain=True,
        en="A download failed[[ from {address}]]: no network here, or the file is not in the cache.",
        zh="下载失败[[（{address}）]]：此处没有网络，或文件不在缓存中。",
    ),
)
