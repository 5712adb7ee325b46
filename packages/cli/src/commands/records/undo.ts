/**
 * `seamark undo PLAN…`: takes applied plans back, RRset by RRset, where they have not changed since. A PLAN is a file, or the
 * number of a plan that the manager or a command applied; without one the stored plans are listed.
 */
import { existsSync } from 'node:fs'
import { Lease } from '@seamark/kube'
import { inverseOf, type Plan } from '@seamark/operator'
import { Command } from 'commander'
import { groupPlans, printCauses } from './applied-plans.ts'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addOutputFlag, printValue } from '../../output-form.ts'
import {
  addRecordsFlags,
  applyMarkerPlans,
  printPlans,
  type RecordsFlags,
  type Session,
  withSession,
} from './records-session.ts'
import { readPlans } from './apply.ts'

interface Flags extends RecordsFlags {
  dryRun?: boolean
  output: 'text' | 'wide' | 'json' | 'yaml'
}

export function build(io: Io): Command {
  const command = new Command()
    .description('take applied plans back; without a plan, list those that can be')
    .argument('[plans...]', 'plan files, or numbers of applied plans')
    .option('--dry-run', 'print what would be written, and write nothing')
  addOutputFlag(command, ['text', 'wide', 'json', 'yaml'], 'text')
  addRecordsFlags(command)
  return command.action(async (given: string[], flags: Flags & Record<string, unknown>) =>
    withSession(io, flags, async (session) => {
      if (given.length === 0) {
        await list(io, session, flags.output)
        return
      }
      const found = await Promise.all(given.map(async (plan) => findPlans(plan, session)))
      // The newest first: an older plan may have made what a newer one changed.
      const plans = found.flat().toSorted((a, b) => b.number - a.number)
      // Each gets a number greater than that of the plan it takes back, even when the clock was set back.
      const inverses = plans.map((plan) => inverseOf(plan, Math.max(Date.now(), plan.number + 1)))
      await warnOfManager(io, session)
      if (flags.dryRun === true) io.stdout.write(printPlans(inverses, flags.output))
      else await applyMarkerPlans(io, session, inverses)
    }),
  )
}

async function list(io: Io, { plans }: Session, form: Flags['output']): Promise<void> {
  const numbers = [...new Set((await plans.list()).map(({ number }) => number))]
  const stored: Plan[] = []
  // One after the other: each may be a request to the API server.
  for (const number of numbers) stored.push(...(await plans.load(number)))
  const causes = groupPlans(stored)
  io.stdout.write(form === 'json' || form === 'yaml' ? printValue(form, causes) : printCauses(causes, form === 'wide'))
}

async function findPlans(given: string, { plans, owner }: Session): Promise<readonly Plan[]> {
  const found = /^\d+$/.test(given) && !existsSync(given) ? await plans.load(Number(given)) : await readPlans(given)
  if (found.length === 0)
    throw new CommandError(`no plan ${given} is stored; 'seamark undo' lists those that are`, EXIT.error)
  const other = found.find((plan) => plan.owner !== owner.id)
  if (other !== undefined)
    throw new CommandError(
      `plan ${given} belongs to owner '${other.owner}', the configuration to '${owner.id}'; use --owner ${other.owner}`,
      EXIT.refused,
    )
  return found
}

/** A running manager writes again what its sources still request: then the undo does not last. */
async function warnOfManager(io: Io, { cluster, manager, namespace }: Session): Promise<void> {
  if (cluster === undefined || manager.mode !== 'enforce') return
  const { leaderElection } = manager
  const key = `${leaderElection.namespace || namespace}/${leaderElection.lease}` as const
  const lease = await cluster.client.find(Lease, key, { signal: io.signal }).catch(() => undefined)
  const { holderIdentity = '', renewTime = '', leaseDurationSeconds = 0 } = lease?.spec ?? {}
  const heldUntil = Date.parse(renewTime) + leaseDurationSeconds * 1000
  if (holderIdentity === '' || !(heldUntil > Date.now())) return
  io.stderr.write(
    `warning: the manager ${holderIdentity} is running (Lease ${key}): it writes again what its sources still request.\n` +
      `warning: correct the sources first, or stop it: kubectl -n ${namespace} scale deployment seamark --replicas=0\n`,
  )
}
