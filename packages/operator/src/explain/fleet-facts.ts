/** What the fleet stored about a host, as facts of `explain`: in place of those of a source of publish. Pure. */
import { fleetHops, type HostTrace, publishedAddresses, storedAnswer, waitingOf } from '../fleet/trace.ts'
import type { ExplainFacts } from './facts.ts'

type FleetFacts = Pick<ExplainFacts, 'fleet' | 'published' | 'storedAnswer' | 'waiting' | 'isAnswerPartial'>

export function fleetFacts(trace: HostTrace): FleetFacts {
  const published = publishedAddresses(trace)
  const stored = storedAnswer(trace)
  const waiting = waitingOf(trace)
  return {
    fleet: fleetHops(trace),
    ...(published !== undefined && { published }),
    ...(stored !== undefined && { storedAnswer: stored }),
    ...(waiting !== undefined && { waiting }),
    isAnswerPartial: trace.roots.some(({ global }) => ['weighted', 'geo'].includes(global.spec.strategy)),
  }
}
