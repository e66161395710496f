// System packages that the editor tests need: installed where that is possible, else named.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

/** Something that this machine lacks and that the tests cannot install; the message says what to type. */
export class MissingPrerequisite extends Error {}

function mayInstall() {
    return process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");
}

let updated = false;

/** Throws MissingPrerequisite, with what to type, unless `isThere()`. */
export function namedPackage(name, isThere) {
    if (!isThere()) {
        throw new MissingPrerequisite(`${name} is not installed; on Debian or Ubuntu: sudo apt-get install ${name}`);
    }
}

/** Installs a Debian package unless `isThere()`. Throws MissingPrerequisite where it may not or cannot. */
export function systemPackage(name, isThere) {
    if (!isThere() && mayInstall()) {
        const options = { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }, stdio: ["ignore", process.stderr, process.stderr] };
        try {
            if (!updated) {
                execFileSync("apt-get", ["update", "-qq"], options);
                updated = true;
            }
            execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", name], options);
        } catch (error) {
            console.error(String(error));
        }
    }
    namedPackage(name, isThere);
}

const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/usr/bin/google-chrome-stable"];

/** The path of a Chromium, with fonts for Chinese beside it. */
export function ensureChromium() {
    const named = process.env.RANKSAFE_CHROMIUM;
    const find = () => [named, ...BROWSERS].find((path) => path && existsSync(path));
    systemPackage("chromium", () => find() !== undefined);
    if (mayInstall()) {
        systemPackage("fonts-dejavu-core", () => existsSync("/usr/share/fonts/truetype/dejavu"));
        systemPackage("fonts-noto-cjk", () => existsSync("/usr/share/fonts/opentype/noto"));
    }
    return find();
}
