/** `seamark config view`: the configuration the manager would run with, and with `--origin` where each value comes from. */
import { readFile } from 'node:fs/promises'
import { listSettings, loadConfig, type LoadedConfig, valueAt } from '@seamark/operator'
import { Command } from 'commander'
import { stringify } from 'yaml'
import { CommandError, EXIT, type Io } from '../command.ts'

interface Flags {
  config?: string
  origin?: boolean
}

export function build(io: Io): Command {
  const command = new Command()
    .description('print the configuration the manager would run with')
    .option('--config <file>', 'ManagerConfiguration file')
    .option('--origin', 'say for each value whether it is a default or comes from the file, the environment or a flag')
  addSettingFlags(command)
  return command.action(async (flags: Flags & Record<string, unknown>) => {
    const loaded = await readConfig(io, flags)
    io.stdout.write(flags.origin === true ? printOrigins(loaded) : stringify(loaded.config))
  })
}

const VALUES = { switch: 'true|false', number: 'number', text: 'text', list: 'list', objects: 'object' } as const

/** One flag for every setting of the configuration, as `seamark run` takes them. */
export function addSettingFlags(command: Command): void {
  for (const { flag, shape, variable, choices } of listSettings()) {
    const value = shape === 'switch' ? '[true|false]' : `<${choices?.join('|') ?? VALUES[shape]}>`
    const option = command.createOption(`--${flag} ${value}`, variable)
    if (shape === 'switch') option.preset('true')
    if (shape === 'objects') option.argParser((text: string, before: string[] | undefined) => [...(before ?? []), text])
    command.addOption(option)
  }
}

export async function readConfig(io: Io, flags: Flags & Record<string, unknown>): Promise<LoadedConfig> {
  const path = flags.config ?? io.env['SEAMARK_CONFIG']
  const file = path === undefined ? undefined : await readFile(path, 'utf8').catch((error: Error) => error)
  if (file instanceof Error) throw new CommandError(`cannot read the configuration: ${file.message}`)
  const typed = Object.fromEntries(
    listSettings().map(({ flag }) => [flag, flags[camelCase(flag)] as string | string[] | undefined]),
  )
  const result = loadConfig({ ...(file !== undefined && { file }), env: io.env, flags: typed })
  if (!result.ok) throw new CommandError(result.faults.join('\nerror: '), EXIT.usage)
  return result
}

/** As commander names the value of a flag. */
function camelCase(flag: string): string {
  return flag.replaceAll(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function printOrigins({ config, origins }: LoadedConfig): string {
  const rows = listSettings().map(
    ({ path }) => [path, JSON.stringify(valueAt(config, path)), origins.get(path) ?? 'default'] as const,
  )
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows
    .map(([path, value, origin]) => `${path.padEnd(widths[0] ?? 0)}  ${value.padEnd(widths[1] ?? 0)}  ${origin}\n`)
    .join('')
}
