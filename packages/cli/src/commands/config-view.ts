/** `seamark config view`: the configuration the manager would run with, and with `--origin` where each value comes from. */
import { listSettings, type LoadedConfig, valueAt } from '@seamark/operator'
import { Command } from 'commander'
import type { Io } from '../command.ts'
import { addOutputFlag, printTable, printValue } from '../output-form.ts'
import { addSettingFlags, type ConfigFlags, readConfig } from '../flags/setting-flags.ts'

interface Flags extends ConfigFlags {
  origin?: boolean
  output: 'json' | 'yaml'
}

export function build(io: Io): Command {
  const command = new Command()
    .description('print the configuration the manager would run with')
    .option('--config <file>', 'ManagerConfiguration file [SEAMARK_CONFIG]')
    .option(
      '--origin',
      'print a table: setting, value, and whether it is a default or from the file, the environment or a flag',
    )
  addOutputFlag(command, ['yaml', 'json'], 'yaml')
  addSettingFlags(command)
  return command.action(async (flags: Flags & Record<string, unknown>) => {
    const loaded = await readConfig(io, flags)
    io.stdout.write(flags.origin === true ? printOrigins(loaded) : printValue(flags.output, loaded.config))
  })
}

function printOrigins({ config, origins }: LoadedConfig): string {
  const rows = listSettings().map(({ path }) => [
    path,
    JSON.stringify(valueAt(config, path)),
    origins.get(path) ?? 'default',
  ])
  return printTable(['SETTING', 'VALUE', 'ORIGIN'], rows)
}
