/**
 * The `seamark` command: finds the verb, loads its file, runs it and maps its result to an exit code.
 * The only package that prints or exits.
 */
import { setMaxListeners } from 'node:events'
import { Command, CommanderError } from 'commander'
import { EXIT, type ExitCode, type Io } from './command.ts'
import { VERBS, type Verb, findVerb } from './verbs.ts'

/** What a terminal sends to a group of processes, npm passes on to its child once more. */
const SAME_SIGNAL_MS = 500

/** SIGINT and SIGTERM abort `signal`; a second one ends the process at once. */
function untilSignalled(): AbortSignal {
  const controller = new AbortController()
  let firstMs = 0
  // Every request of a command adds a listener.
  setMaxListeners(0, controller.signal)
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (!controller.signal.aborted) firstMs = performance.now()
      else if (performance.now() - firstMs >= SAME_SIGNAL_MS) process.exit(EXIT.error)
      controller.abort()
    })
  }
  return controller.signal
}

/** A reader that closes the pipe (`| head`) is no error: further output is discarded. */
function untilOutputClosed(): AbortSignal {
  const controller = new AbortController()
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      if (stream === process.stdout) controller.abort()
    })
  }
  return controller.signal
}

/** The overview that `seamark`, `seamark --help` and `seamark help` print. It also finds verbs of similar spelling. */
function overview(): Command {
  const program = new Command('seamark')
    .description('Global ingress for Kubernetes: DNS records, certificates, ownership and hand-over')
    .usage('VERB [flags]')
    .helpOption('-h, --help', 'this overview; after a verb: the help of that verb')
    .configureHelp({
      // Commander takes the second word of `dns serve` for an argument.
      subcommandTerm: (command) =>
        [command.name(), ...command.registeredArguments.map((each) => each.name())].join(' '),
    })
    .helpCommand('help [verb]', 'the help of a verb')
    .addHelpText(
      'after',
      '\nExit codes: 0 ok, 1 error, 2 changes or findings, 3 refused by a guard, 4 timeout, 5 wrong usage.' +
        '\nShell completion: seamark completion bash|zsh|fish|kubectl',
    )
  for (const verb of VERBS) program.command(verb.name).description(verb.summary)
  return program
}

/** `unknown command 'appli' (Did you mean apply?)` */
function unknownVerb(argv: readonly string[]): string {
  const [first = ''] = argv
  const group = VERBS.filter(({ name }) => name.startsWith(`${first} `)).map(({ name }) => name)
  if (group.length > 0 && (argv[1] === undefined || argv[1].startsWith('-')))
    return `'${first}' needs a further word: seamark ${group.join(', seamark ')}`
  let text = ''
  const program = overview()
    .exitOverride()
    .configureOutput({ outputError: (message) => (text = message) })
  try {
    program.parse([first, ...argv.slice(1)], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
  }
  const similar =
    group.length > 0 ? `(Did you mean ${group.join(' or ')}?)` : (/\(Did you mean [^)]*\)/.exec(text)?.[0] ?? '')
  const typed = argv.slice(0, group.length > 0 ? 2 : 1).join(' ')
  return `unknown command '${typed}'${similar === '' ? '' : ` ${similar}`}; 'seamark --help' lists the commands`
}

async function runVerb(verb: Verb, rest: string[], io: Io): Promise<ExitCode | undefined> {
  const [{ failureWriter, redirectOutput }, { build }, { prepare }] = await Promise.all([
    import('./failure.ts'),
    verb.load(),
    import('./prepare.ts'),
  ])
  const command = prepare(build(io), verb.name)
  const isLogged = verb.isLogged === true && !command.commands.some((each) => each.name() === rest[0])
  const fail = await failureWriter({ name: verb.name, isLogged }, io.stderr)
  redirectOutput(command, io, fail)
  const isDebug = rest.includes('--debug')
  const end = async (error: unknown): Promise<ExitCode> => {
    const { describeFault, stacksOf } = await import('./fault.ts')
    const { says, code } = describeFault(error)
    fail(says, isDebug ? stacksOf(error) : undefined)
    return code
  }
  const crash = async (error: unknown): Promise<never> => process.exit(await end(error))
  const onCrash = (error: unknown): void => void crash(error)
  if (isLogged) process.on('uncaughtException', onCrash)
  // Node ends a process that only waits, and what waits for a server that does not answer has unreferenced timers.
  const alive = setInterval(() => undefined, 60_000)
  try {
    await command.parseAsync(rest, { from: 'user' })
    return undefined
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    if (io.signal.aborted && isAborted(error)) return EXIT.ok
    return await end(error)
  } finally {
    clearInterval(alive)
    process.off('uncaughtException', onCrash)
  }
}

/** A request that ended because the user interrupted the command. */
function isAborted(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return error.name === 'AbortError' || (error as { code?: unknown }).code === 'ABORTED' || isAborted(error.cause)
}

export async function main(argv: string[]): Promise<ExitCode> {
  return runSeamark(argv, {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    signal: untilSignalled(),
    outputClosed: untilOutputClosed(),
  })
}

/** The whole command line, with output, environment and signal of the caller. */
export async function runSeamark(argv: readonly string[], outside: Omit<Io, 'exit'>): Promise<ExitCode> {
  let code: ExitCode = EXIT.ok
  const io: Io = { ...outside, exit: (exitCode) => (code = exitCode) }
  const first = argv[0]
  const isHelp = first === 'help'
  if (first === undefined || first === '--help' || first === '-h' || (isHelp && argv[1] === undefined)) {
    io.stdout.write(helpText(overview()))
    return first === undefined ? EXIT.usage : EXIT.ok
  }
  const words = first === '--version' || first === '-V' ? ['version'] : isHelp ? argv.slice(1) : argv
  const found = findVerb(VERBS, words)
  if (found === undefined) {
    io.stderr.write(`error: ${unknownVerb(words)}\n`)
    return EXIT.usage
  }
  // `help provider list` is `provider list --help`.
  const rest = isHelp ? [...found.rest, '--help'] : found.rest
  return (await runVerb(found.verb, rest, io)) ?? code
}

/** `helpInformation()` leaves out the text that `addHelpText` added. */
function helpText(program: Command): string {
  let text = ''
  program.configureOutput({ writeOut: (part) => (text += part) })
  program.outputHelp()
  return text
}
