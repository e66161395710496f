import { open } from "node:fs/promises";
import * as path from "node:path";

const MOST_OUTPUT = 1_000_000;
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
    const handle = await open(path.join(directory, "log.txt")).catch(() => undefined);
    if (!handle) {
        return nothing;
    }
    try {
        const { size } = await handle.stat();
        const start = Math.max(from, size - MOST_OUTPUT);
        if (size <= start) {
            return nothing;
        }
        const { bytesRead, buffer } = await handle.read(Buffer.alloc(size - start), 0, size - start, start);
        const length = buffer.subarray(0, bytesRead).lastIndexOf(10) + 1;
        return { lines: ranksLines(new TextDecoder().decode(buffer.subarray(0, length))), end: start + length };
    } finally {
        await handle.close();
    }
}

/** The lines of ranks in a piece of a log. */
export function ranksLines(text: string): RankLine[] {
    return text.split(/\r?\n/).flatMap((line) => {
        const found = RANK_LINE.exec(line);
        return found ? [{ rank: Number(found[1]), text: found[2] ?? "" }] : [];
    });
}
