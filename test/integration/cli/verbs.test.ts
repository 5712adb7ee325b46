import { PassThrough } from 'node:stream'
import { EXAMPLES, findVerb, runSeamark, VERBS } from '@seamark/cli/testing'
import { Command } from 'commander'
import { describe, expect, it } from 'vitest'

const { signal } = new AbortController()
const io = { stdout: process.stdout, stderr: process.stderr, env: {}, signal, exit: () => undefined }

it.each(VERBS)('the verb $name is loaded, and builds a command with a description', async ({ load }) => {
  const { build } = await load()
  expect(build(io).description()).not.toBe('')
})

/** `cluster add`, not `cluster`, which only has subcommands. */
function leavesOf(command: Command, path: string): string[] {
  const own = (command as unknown as { _actionHandler: unknown })._actionHandler === null ? [] : [path]
  return [...own, ...command.commands.flatMap((each) => leavesOf(each, `${path} ${each.name()}`))]
}

async function allCommands(): Promise<string[]> {
  const all: string[] = []
  for (const { name, load } of VERBS) all.push(...leavesOf((await load()).build(io), name))
  return all.toSorted()
}

/** The command with all of its flags, and without what it does. */
function disarm(command: Command): Command {
  command
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .action(() => undefined)
  for (const each of command.commands) disarm(each)
  return command
}

describe('the help of each command', () => {
  it('has examples for every command, and for nothing else', async () => {
    expect(Object.keys(EXAMPLES).toSorted()).toEqual(await allCommands())
  })

  it.each(Object.entries(EXAMPLES))('shows examples of %s that the command accepts', async (path, examples) => {
    const stdout = new PassThrough()
    let help = ''
    stdout.on('data', (chunk: Buffer) => (help += chunk.toString()))
    await runSeamark([...path.split(' '), '--help'], { stdout, stderr: stdout, env: {}, signal })
    expect(examples).not.toEqual([])
    for (const example of examples) {
      expect(help).toContain(`\n  seamark ${example}\n`)
      const [typed = ''] = example.split(' | ')
      expect(`${typed} `).toMatch(new RegExp(`^${path} `))
      const found = findVerb(VERBS, typed.split(' '))
      const { build } = (await found?.verb.load()) ?? { build: () => new Command() }
      await disarm(build(io)).parseAsync(found?.rest ?? ['--nothing'], { from: 'user' })
    }
    expect(help).toContain('--debug')
  })
})
