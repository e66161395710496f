import { open, readdir, readFile, stat } from "node:fs/promises";
import * as path from "node:path";

const MOST_OUTPUT = 1_000_000;
/** How long the beginning of a log and its parts are (`ranksafe.runs.kept_output`). */
export const HEAD_BYTES = 4 * 2 ** 20;
export const PART_BYTES = 2 ** 20;
/** What the log puts before each line of a rank; the launcher's lines, which repeat that a rank failed, stay in the log. */
const RANK_LINE = /^\[rank (\d+)\] ?(.*)$/;

/** A line that a rank has printed. */
export interface RankLine {
    readonly rank: number;
    readonly text: string;
}

/**
 * The ranks' whole lines in a run's growing log from the byte `from` on, of very many the last: a log may have gigabytes,
 * and is looked at twice a second. Ends at a line's end, so that a character of several bytes is not cut in two.
 */
export async function linesSince(directory: string, from: number): Promise<{ readonly lines: readonly RankLine[]; readonly end: number }> {
    const nothing = { lines: [], end: from };
    const { file, begin } = await newest(directory);
    const handle = await open(path.join(directory, file)).catch(() => undefined);
    if (!handle) {
        return nothing;
    }
    try {
        const { size } = await handle.stat();
        const start = Math.max(from - begin, size - MOST_OUTPUT, 0);
        if (size <= start) {
            return nothing;
        }
        const { bytesRead, buffer } = await handle.read(Buffer.alloc(size - start), 0, size - start, start);
        const length = buffer.subarray(0, bytesRead).lastIndexOf(10) + 1;
        return { lines: ranksLines(new TextDecoder().decode(buffer.subarray(0, length))), end: begin + start + length };
    } finally {
        await handle.close();
    }
}

/**
 * The file that holds the end of the log, and which byte of all that was logged is its first. A long log goes on in parts
 * (`log.txt.1` and so on: `ranksafe.runs.kept_output`), which become one file in the end, without its middle.
 */
async function newest(directory: string): Promise<{ readonly file: string; readonly begin: number }> {
    const names = await readdir(directory).catch((): string[] => []);
    const part = Math.max(0, ...names.map((name) => Number(/^log\.txt\.(\d+)$/.exec(name)?.[1] ?? 0)));
    if (part > 0) {
        return { file: `log.txt.${part}`, begin: HEAD_BYTES + (part - 1) * PART_BYTES };
    }
    const whole = { file: "log.txt", begin: 0 };
    if (!names.includes("log.txt.length")) {
        return whole;
    }
    const logged = Number(await readFile(path.join(directory, "log.txt.length"), "utf8").catch(() => NaN));
    const { size } = await stat(path.join(directory, whole.file)).catch(() => ({ size: NaN }));
    return Number.isNaN(logged - size) ? whole : { ...whole, begin: logged - size };
}

/** The lines of ranks in a piece of a log. */
export function ranksLines(text: string): RankLine[] {
    return text.split(/\r?\n/).flatMap((line) => {
        const found = RANK_LINE.exec(line);
        return found ? [{ rank: Number(found[1]), text: found[2] ?? "" }] : [];
    });
}
