import chinese from "../../l10n/bundle.l10n.zh-cn.json";

const translations: Readonly<Record<string, string>> = chinese;

let translate = false;

export type Language = "en" | "zh-cn";

/** The language for an editor's locale: every Chinese locale reads Simplified Chinese, everyone else English. */
export function languageOf(locale: string): Language {
    return locale.toLowerCase().startsWith("zh") ? "zh-cn" : "en";
}

/** Sets the language of everything that `t` returns from now on. */
export function useLanguage(language: Language): void {
    translate = language === "zh-cn";
}

/** A moment, in seconds since the epoch, as the user writes it. */
export function dateText(seconds: number): string {
    return new Date(seconds * 1000).toLocaleString(translate ? "zh-CN" : undefined);
}

/**
 * The message in the user's language, with `{0}`, `{1}`… replaced by `values`.
 *
 * `vscode.l10n.t` would follow the display language only, and `ranksafe.language` may name another one.
 */
export function t(message: string, ...values: readonly (string | number)[]): string {
    const text = translate ? (translations[message] ?? message) : message;
    return text.replace(/\{(\d+)\}/g, (placeholder, index: string) => String(values[Number(index)] ?? placeholder));
}
