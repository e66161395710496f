/** The package without compiled libraries, which editors take on every other platform. */
export const UNIVERSAL = "universal";

/**
 * For each `vsce --target`: the wheel tags pip may take, newest baseline last.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const PLATFORMS = {
    "linux-x64": ["manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64"],
    "linux-arm64": ["manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64"],
    "alpine-x64": ["musllinux_1_1_x86_64", "musllinux_1_2_x86_64"],
    "alpine-arm64": ["musllinux_1_1_aarch64", "musllinux_1_2_aarch64"],
    "darwin-x64": ["macosx_10_9_x86_64", "macosx_10_12_x86_64", "macosx_10_13_x86_64", "macosx_10_15_x86_64"],
    "darwin-arm64": ["macosx_11_0_arm64", "macosx_12_0_arm64", "macosx_14_0_arm64"],
    "win32-x64": ["win_amd64"],
    "win32-arm64": ["win_arm64"],
    [UNIVERSAL]: [],
};

/** The target of the machine this runs on. */
export function thisTarget() {
    return `${process.platform}-${process.arch}`;
}
