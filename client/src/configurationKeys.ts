import schema from "../../server/ranksafe/checker/configuration.schema.json";

/** What is used of a JSON schema. */
interface Schema {
    readonly type?: string;
    readonly description?: string;
    readonly enum?: readonly string[];
    readonly anyOf?: readonly Schema[];
    readonly items?: Schema;
    readonly additionalProperties?: Schema;
    readonly $ref?: string;
}

/** What can stand where the user types; a key has a description. */
export interface Proposal {
    readonly label: string;
    readonly insert: string;
    readonly description?: string;
}

const KEYS: Readonly<Record<string, Schema>> = schema.properties;
const DEFINITIONS: Readonly<Record<string, Schema>> = schema.definitions;
const EMPTY_VALUES: Readonly<Record<string, string>> = { array: "[]", object: "{}" };

/** Every text that a value, or an item in it, is known to be able to be. */
function knownTexts({ enum: own = [], anyOf = [], items, additionalProperties, $ref }: Schema): readonly string[] {
    const parts = [...anyOf, items, additionalProperties, $ref === undefined ? undefined : DEFINITIONS[$ref.replace("#/definitions/", "")]];
    return [...own, ...parts.flatMap((part) => (part === undefined ? [] : knownTexts(part)))];
}

function values(key: string, isQuoted: boolean): readonly Proposal[] {
    const schemaOfKey = KEYS[key] ?? {};
    const known = knownTexts(schemaOfKey).map((text) => (isQuoted ? text : JSON.stringify(text)));
    const all = schemaOfKey.type === "boolean" && !isQuoted ? ["true", "false"] : known;
    return all.map((text) => ({ label: text, insert: text }));
}

function count(text: string, letter: string): number {
    return text.split(letter).length - 1;
}

/** What can stand at the end of `before`, the text of a configuration file up to the cursor. */
export function proposals(before: string, isPyproject: boolean): readonly Proposal[] {
    const header = [...before.matchAll(/^\[([^[\]=,]+)\]/gm)].at(-1);
    const table = (header?.[1] ?? "").replace(/[\s'"]/g, "");
    const section = before.slice(header === undefined ? 0 : header.index + header[0].length);
    const entries = [...section.matchAll(/^[ \t]*("[^"\n]*"|[\w.-]+)[ \t]*=/gm)];
    const last = entries.at(-1);
    const value = last === undefined ? undefined : section.slice(last.index + last[0].length);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    const inValue = value !== undefined && (!value.includes("\n") || count(value, "[") > count(value, "]"));
    const [own, patterns] = isPyproject ? ["tool.ranksafe", "tool.ranksafe.per-file-ignores"] : ["", "per-file-ignores"];
    if (inValue) {
        const key = table === own ? last?.[1] : table === patterns ? "per-file-ignores" : undefined;
        return key === undefined ? [] : values(key, count(line, '"') % 2 === 1);
    }
    if (table !== own || !/^[ \t]*[\w-]*$/.test(line)) {
        return [];
    }
    const given = new Set(entries.map((entry) => entry[1]));
    return Object.entries(KEYS)
        .filter(([key]) => !given.has(key))
        .map(([key, { type = "", description = "" }]) => ({ label: key, insert: `${key} = ${EMPTY_VALUES[type] ?? ""}`, description }));
}
