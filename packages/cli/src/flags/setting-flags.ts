/**
 * The manager's settings as flags of a command, and the configuration they give together with the file and the environment.
 * One flag per setting, grouped by capability in the help of `seamark run` and `seamark config view`.
 */
import { type ConfigResult, listSettings, loadConfig, type LoadedConfig, type Setting } from '@seamark/operator'
import type { Command, Help } from 'commander'
import { CommandError, EXIT, type Io } from '../command.ts'
import { readText } from '../manifest-files.ts'

export interface ConfigFlags {
  config?: string
}

/** By shape; a switch takes `[true|false]`. */
const PLACEHOLDERS = { number: 'number', text: 'text', list: 'list', objects: 'object' } as const

const GROUPS: Readonly<Record<string, string>> = {
  balance: 'Settings of balance:',
  publish: 'Settings of publish:',
  records: 'Settings of records:',
  wildcard: 'Settings of wildcard:',
  dns: 'Settings of the DNS server:',
  gateway: 'Settings of the gateway:',
}

/** Longer lists of values are named in the description instead. */
const MAX_PLACEHOLDER_LENGTH = 24

/**
 * `isListed: false` leaves them out of the help, for commands that only read a few of them; they are accepted all the same.
 */
export function addSettingFlags(command: Command, { isListed = true } = {}): void {
  for (const setting of listSettings()) {
    const { flag, path, shape } = setting
    // `-n, --namespace`, which the command has described already.
    if (command.options.some(({ long }) => long === `--${flag}`)) continue
    const option = command
      .createOption(`--${flag} ${placeholder(setting)}`, describe(setting))
      .helpGroup(GROUPS[path.split('.')[0] ?? ''] ?? 'Settings of the manager:')
    if (shape === 'objects') option.argParser((text: string, before: string[] | undefined) => [...(before ?? []), text])
    if (!isListed) option.hideHelp()
    command.addOption(option)
  }
  if (isListed) command.configureHelp({ formatItem })
  else command.addHelpText('after', "\nEvery setting of the manager is a flag here too: 'seamark help run' lists them.")
}

/** The names of settings are long: their description goes on the next line. */
function formatItem(term: string, _termWidth: number, description: string, helper: Help): string {
  const indent = ' '.repeat(DESCRIPTION_INDENT)
  const width = (helper.helpWidth ?? 80) - DESCRIPTION_INDENT
  return `  ${term}\n${indent}${helper.boxWrap(description, width).replaceAll('\n', `\n${indent}`)}`
}

const DESCRIPTION_INDENT = 8

function placeholder({ shape, choices }: Setting): string {
  if (shape === 'switch') return '[true|false]'
  const all = choices?.join('|')
  if (shape === 'list') return '<list>'
  return all !== undefined && all.length <= MAX_PLACEHOLDER_LENGTH ? `<${all}>` : `<${PLACEHOLDERS[shape]}>`
}

function describe(setting: Setting): string {
  const { description, variable, choices, shape, default: fallback } = setting
  const isInPlaceholder = choices === undefined || placeholder(setting).includes(choices.join('|'))
  const values = isInPlaceholder ? '' : ` (${shape === 'list' ? 'any of ' : ''}${choices.join(', ')})`
  return `${description}${values}${shownDefault(fallback)} [${variable}]`
}

function shownDefault(value: unknown): string {
  if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) return ''
  if (Array.isArray(value)) return ` (default: ${value.join(',')})`
  return ` (default: ${String(value)})`
}

/** Throws CommandError with one line per fault. */
export async function readConfig(io: Io, flags: ConfigFlags & Record<string, unknown>): Promise<LoadedConfig> {
  const path = configPath(io, flags)
  const file = path === undefined ? undefined : await readText(path)
  const result = parseConfig(io, flags, file)
  if (!result.ok)
    throw new CommandError(
      result.faults.map((fault) => fault.replace(/^configuration: /, `${path ?? 'configuration'}: `)).join('\n'),
      EXIT.usage,
    )
  return result
}

/** The file's text together with the flags and the environment. */
export function parseConfig(
  io: Io,
  flags: ConfigFlags & Record<string, unknown>,
  file: string | undefined,
): ConfigResult {
  const typed = Object.fromEntries(
    listSettings().map(({ flag }) => [flag, flags[camelCase(flag)] as string | boolean | string[] | undefined]),
  )
  return loadConfig({ ...(file !== undefined && { file }), env: io.env, flags: typed })
}

export function configPath(io: Io, flags: ConfigFlags): string | undefined {
  return flags.config ?? io.env['SEAMARK_CONFIG']
}

/** As commander names the value of a flag. */
function camelCase(flag: string): string {
  return flag.replaceAll(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
