/** Waiting for what a machine that is busy may do late: only a failure takes this long. */
const LIMIT_MS = 150_000
const PERIOD_MS = 50

/** Polls until the value is there. */
export async function eventually<T>(
  what: string,
  read: () => Promise<T | undefined>,
  limitMs: number = LIMIT_MS,
): Promise<T> {
  const deadline = performance.now() + limitMs
  for (;;) {
    const value = await read()
    if (value !== undefined) return value
    if (performance.now() > deadline) throw new Error(`not within ${limitMs / 1000} s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, PERIOD_MS))
  }
}
