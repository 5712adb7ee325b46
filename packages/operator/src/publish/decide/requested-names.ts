/** The names that a source requests, from one object alone: its hosts, and the names that annotations add to a certificate. Pure. */
import type { Immutable, Obj } from '@seamark/kube/object'
import type { JudgedKind } from '../../process/name-admission.ts'
import type { PublishOptions, SourceKind } from '../options.ts'
import { claimKey } from '../sources/host-claim.ts'
import type { Source } from '../sources/source.ts'
import { isClaiming, readAlone, sourceKindToken } from '../sources/source-reader.ts'
import { readCertificateNames } from './certificate-annotations.ts'

/** The kinds of sources, each with the names that an object requests: for admission. */
export function judgedSources(options: PublishOptions): JudgedKind[] {
  return options.sources.map((kind) => ({
    kind: sourceKindToken(kind),
    names: (object) => requestedNames(kind, object, options),
  }))
}

/** None for a source that publish does not serve: excluded, being deleted, or of another class. */
function requestedNames(kind: SourceKind, object: Immutable<Obj>, options: PublishOptions): ReadonlySet<string> {
  const source = readAlone(kind, object)
  if (!isClaiming(source, options)) return new Set()
  return new Set([...source.hosts.map(claimKey), ...certificateNames(source, options)])
}

/** The names that annotations add to a certificate, in addition to the hosts of the source. */
export function certificateNames(source: Source, options: PublishOptions): string[] {
  if (!options.annotations) return []
  const own = new Set(source.hosts.map(claimKey))
  return readCertificateNames(source.annotations).filter((name) => !own.has(claimKey(name)))
}
