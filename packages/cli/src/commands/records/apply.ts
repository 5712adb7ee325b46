/** `seamark apply FILE`: writes a plan that `seamark plan --out` made, unless what it was made from has changed. */
import { parsePlanFile, type Plan, RecordsError } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { readText } from '../../manifest-files.ts'
import { addRecordsFlags, applyPlans, printPlans, type RecordsFlags, withSession } from './records-session.ts'

interface Flags extends RecordsFlags {
  dryRun?: boolean
}

export function build(io: Io): Command {
  const command = new Command()
    .description('write a plan; refuses when its base moved')
    .argument('<file>', 'plan made by seamark plan --out')
    .option('--dry-run', 'print the plan and write nothing')
  addRecordsFlags(command)
  return command.action(async (file: string, flags: Flags & Record<string, unknown>) => {
    const plans = await readPlans(file)
    if (flags.dryRun === true) {
      io.stdout.write(printPlans(plans, 'text'))
      return
    }
    await withSession(io, flags, async ({ engine, owner }) => {
      const other = plans.find((plan) => plan.owner !== owner.id)
      if (other !== undefined)
        throw new CommandError(
          `the plan belongs to owner '${other.owner}', the configuration to '${owner.id}'; use --owner ${other.owner}, or make the plan again`,
          EXIT.refused,
        )
      await applyPlans(io, engine, plans, { requiresBase: true })
    })
  })
}

export async function readPlans(file: string): Promise<Plan[]> {
  const text = await readText(file)
  try {
    return parsePlanFile(text)
  } catch (error) {
    if (error instanceof RecordsError) throw new CommandError(`${file}: ${error.message}`, EXIT.usage)
    throw error
  }
}
