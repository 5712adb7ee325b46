/** Programs of a bench as child processes: what one prints as a whole, and one that reports while it runs. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** What a process prints, once it has ended; an error when it failed. */
export async function outputOf(child: ChildProcess, name: string): Promise<string> {
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number]
  if (code !== 0) throw new Error(`${name} exited with ${code}`)
  return text
}

/** A process that prints a line of JSON for each of its events, the last of them `stopped` after SIGTERM. */
export class MeasuredProcess<Report extends { readonly event: string }> {
  readonly #child: ChildProcess
  readonly #reports: Report[] = []
  #hasExited = false
  #wake: () => void = () => undefined

  constructor(child: ChildProcess) {
    this.#child = child
    if (child.stdout === null) throw new Error('the measured process has no output')
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#reports.push(JSON.parse(line) as Report)
      this.#wake()
    })
    child.once('exit', () => {
      this.#hasExited = true
      this.#wake()
    })
  }

  /** The first report that `isRight` accepts, also one from before the call. */
  async until(isRight: (report: Report) => boolean): Promise<Report> {
    for (;;) {
      const found = this.#reports.find(isRight)
      if (found !== undefined) return found
      if (this.#hasExited) throw new Error('the measured process ended before it was done')
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** The last report: totals and peaks of its whole life. */
  async stop(): Promise<Report> {
    this.#child.kill('SIGTERM')
    return this.until(({ event }) => event === 'stopped')
  }
}
