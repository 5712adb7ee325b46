/** Runs one verb of the command line in this process, with its own output, environment and exit code. */
import { Writable } from 'node:stream'
import { describeFault, type ExitCode, findVerb, type Io, VERBS } from '@seamark/cli/testing'
import { CommanderError } from 'commander'

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

function collector(): { stream: Writable; text: () => string } {
  let text = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk)
      done()
    },
  })
  return { stream, text: () => text }
}

export async function runCommand(
  argv: readonly string[],
  env: NodeJS.ProcessEnv = {},
  signal = AbortSignal.timeout(60_000),
): Promise<Ran> {
  const found = findVerb(VERBS, argv)
  if (found === undefined) throw new Error(`no verb ${argv[0] ?? ''}`)
  const [out, err] = [collector(), collector()]
  let code: ExitCode = 0
  const io: Io = {
    stdout: out.stream,
    stderr: err.stream,
    env,
    signal,
    exit: (wanted) => (code = wanted),
  }
  try {
    const { build } = await found.verb.load()
    const command = build(io).exitOverride()
    for (const each of [command, ...command.commands])
      each
        .exitOverride()
        .configureOutput({ writeOut: (text) => out.stream.write(text), writeErr: (text) => err.stream.write(text) })
    await command.parseAsync(found.rest, { from: 'user' })
  } catch (error) {
    const { says, code: failed } =
      error instanceof CommanderError ? ({ says: error.message, code: 5 } as const) : describeFault(error)
    if (says.startsWith('unexpected: ')) throw error
    code = failed
    err.stream.write(`${says}\n`)
  }
  return { code, stdout: out.text(), stderr: err.text() }
}
