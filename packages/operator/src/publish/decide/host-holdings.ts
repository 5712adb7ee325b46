/** What balance asks of publish in this process (hosts/host-sources.ts). */
import { anyOf, type Clock, NotSynced, specChanged } from '@seamark/kube'
import type { Immutable, Obj } from '@seamark/kube/object'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import type { HostHolding, HostSources } from '../../hosts/host-sources.ts'
import type { PublishOptions } from '../options.ts'
import { sourceKindToken } from '../sources/source-reader.ts'
import { isSourceChange } from '../triggers.ts'
import { findOwner } from './child.ts'
import { namesOf } from './host-publications.ts'
import type { SourceDecider } from './source-decision.ts'

export function createHostSources(decider: SourceDecider, options: PublishOptions, clock: Clock): HostSources {
  const ofSources = options.sources
    .filter((kind) => kind !== 'Gateway')
    .map((kind) => ({
      kind: sourceKindToken(kind),
      when: isSourceChange(kind),
      hostsOf: (object: Immutable<Obj>) => decider.sources.read(kind, object).hosts,
    }))
  const ofRecords = {
    kind: DNSEndpoint,
    when: anyOf(specChanged),
    hostsOf: (object: Immutable<Obj>) =>
      findOwner(object) === undefined ? [] : namesOf(object as Immutable<DNSEndpoint>),
  }
  return {
    watches: [...ofSources, ofRecords],
    holdingOf(loadBalancer): HostHolding | undefined {
      try {
        return decider.holdingOf(loadBalancer, clock.monotonic())
      } catch (error) {
        // The server denies a kind of source: publish waits for the right, and publishes nothing until then.
        if (error instanceof NotSynced) return undefined
        throw error
      }
    },
  }
}
