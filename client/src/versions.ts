/** Whether version `left` ("1.120.0-insider") comes before `right`. Suffixes do not count. */
export function isOlder(left: string, right: string): boolean {
    const numbers = (version: string): number[] => (version.split(/[-+]/)[0] ?? "").split(".").map(Number);
    const [first, second] = [numbers(left), numbers(right)];
    for (let index = 0; index < Math.max(first.length, second.length); index++) {
        const difference = (first[index] ?? 0) - (second[index] ?? 0);
        if (difference !== 0) {
            return difference < 0;
        }
    }
    return false;
}
