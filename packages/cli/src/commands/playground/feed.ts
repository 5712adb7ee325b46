/** Follows the world: each change of an answer, and each change that a guard holds, as a line. */
import { poll, systemClock } from '@seamark/kube'
import type { Printer } from './printer.ts'
import type { HeldNotice, World } from './world/world.ts'

const POLL_MS = 200

export async function follow(world: World, { line }: Pick<Printer, 'line'>, signal: AbortSignal): Promise<void> {
  let before = recordsOf(world)
  let seen = world.held.length
  const printChanges = (): undefined => {
    const now = recordsOf(world)
    for (const [key, value] of now)
      if (before.get(key) !== value) line(`${before.has(key) ? '~' : '+'} ${key} ${value}`)
    for (const key of before.keys()) if (!now.has(key)) line(`- ${key}`)
    before = now
    for (const text of heldTexts(world.held.slice(seen))) line(text)
    seen = world.held.length
  }
  await poll(printChanges, { clock: systemClock, intervalMs: POLL_MS, signal })
}

function recordsOf({ names }: World): Map<string, string> {
  return new Map(names.records().map(({ name, type, values }) => [`${name} ${type}`, [...values].sort().join(', ')]))
}

/** Changes that are held for one reason are one line. */
function heldTexts(notices: readonly HeldNotice[]): string[] {
  const byReason = new Map<string, string[]>()
  for (const { name, code, why } of notices) {
    const reason = `${code}: ${why}`
    byReason.set(reason, [...(byReason.get(reason) ?? []), name])
  }
  return [...byReason].map(([reason, names]) => {
    const [first = ''] = names
    return `held: ${first}${names.length === 1 ? '' : ` and ${names.length - 1} more`}, ${reason}`
  })
}
