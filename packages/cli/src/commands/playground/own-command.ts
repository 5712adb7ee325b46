/** Runs another verb of `seamark` in this process, and returns what it prints. */
import { Writable } from 'node:stream'
import type { Build, Io } from '../../command.ts'

/** @param onLine called with each line when it is printed */
export async function runVerb(
  io: Io,
  build: Build,
  args: readonly string[],
  onLine: (line: string) => void = () => undefined,
): Promise<string> {
  let text = ''
  let shown = 0
  const stdout = new Writable({
    write(part: Buffer, _encoding, done) {
      text += part.toString()
      const lines = text.split('\n').slice(0, -1)
      for (const line of lines.slice(shown)) onLine(line)
      shown = lines.length
      done()
    },
  })
  // Its exit code is not that of the playground, and variables are those of another manager.
  const captured: Io = { ...io, env: {}, stdout, exit: () => undefined }
  await build(captured).parseAsync(args, { from: 'user' })
  return text
}
