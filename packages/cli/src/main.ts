/**
 * The `seamark` command: finds the verb, loads its file, runs it, maps its outcome to an exit code.
 * The only package that prints or exits.
 */
import { Command, CommanderError } from 'commander'
import { CommandError, EXIT, type ExitCode, type Io } from './command.ts'
import { VERBS, type Verb, findVerb } from './verbs.ts'

/** SIGINT and SIGTERM abort `signal`; a second one ends the process at once. */
function untilSignalled(): AbortSignal {
  const controller = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(EXIT.error)
      controller.abort()
    })
  }
  return controller.signal
}

/** The overview that `seamark`, `seamark --help` and an unknown verb print. */
function overview(): Command {
  const program = new Command('seamark').description(
    'Global ingress for Kubernetes: DNS, certificates, routes, failover',
  )
  for (const verb of VERBS) program.command(verb.name).description(verb.summary)
  return program
}

async function runVerb(verb: Verb, rest: string[], io: Io): Promise<void> {
  const { build } = await verb.load()
  const command = build(io)
    .name(`seamark ${verb.name}`)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
    })
  await command.parseAsync(rest, { from: 'user' })
}

export async function main(argv: string[]): Promise<ExitCode> {
  let code: ExitCode = EXIT.ok
  const io: Io = {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    signal: untilSignalled(),
    exit: (wanted) => (code = wanted),
  }
  const first = argv[0]
  if (first === undefined || first === 'help' || first === '--help' || first === '-h') {
    io.stdout.write(overview().helpInformation())
    return first === undefined ? EXIT.usage : EXIT.ok
  }
  const found = findVerb(VERBS, first === '--version' ? ['version'] : argv)
  if (found === undefined) {
    io.stderr.write(`error: unknown command '${argv.slice(0, 2).join(' ')}'; 'seamark --help' lists the commands\n`)
    return EXIT.usage
  }
  try {
    await runVerb(found.verb, found.rest, io)
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    if (error instanceof CommandError) {
      io.stderr.write(`error: ${error.message}\n`)
      return error.code
    }
    io.stderr.write(`error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    return EXIT.error
  }
  return code
}
