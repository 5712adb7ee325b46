/**
 * Names and namespaces of children. HTTPProxy uses contour-plus' names; every other kind gets `-<kind>` appended, so that
 * two sources of different kinds never use the same object.
 *
 * The name depends on the annotation only and the namespace on the allow-list: with a namespace that is not allowed, the
 * object stays in the namespace of the source under its foreign name, as in contour-plus.
 */
import { createHash } from 'node:crypto'
import { annotation, keysUnder } from '../annotation-keys.ts'
import type { PublishOptions } from '../options.ts'
import type { Source } from '../sources/source.ts'

const NAME_LIMIT = 253

export interface Place {
  readonly name: string
  readonly namespace: string
  /** The source requests another namespace than its own … */
  readonly isElsewhere: boolean
  /** … and the allow-list permits it. */
  readonly isAllowed: boolean
}

function place(source: Source, requested: string, allowed: readonly string[], prefix: string): Place {
  const suffix = source.kind === 'HTTPProxy' ? '' : `-${source.kind.toLowerCase()}`
  // A request for the own namespace has no effect.
  const isElsewhere = requested !== '' && requested !== source.namespace
  const isAllowed = isElsewhere && allowed.includes(requested)
  const stem = isElsewhere ? `${source.namespace}-${source.name}` : source.name
  return {
    name: `${prefix}${stem}${suffix}`,
    namespace: isAllowed ? requested : source.namespace,
    isElsewhere,
    isAllowed,
  }
}

export function dnsPlace(source: Source, options: PublishOptions): Place {
  const requested = annotation(source.annotations, keysUnder(options.annotationPrefix).dnsNamespace) ?? ''
  return place(source, requested, options.allowedDnsNamespaces, options.namePrefix)
}

export function certificatePlace(source: Source, options: PublishOptions): Place {
  const requested = annotation(source.annotations, keysUnder(options.annotationPrefix).issuerNamespace) ?? ''
  return place(source, requested, options.allowedIssuerNamespaces, options.namePrefix)
}

/** Names within the limit are unchanged; longer ones keep their beginning and end with a hash of the whole. */
export function fitName(name: string): string {
  if (name.length <= NAME_LIMIT) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 16)
  return `${name.slice(0, NAME_LIMIT - digest.length - 1).replace(/[-.]+$/, '')}-${digest}`
}
