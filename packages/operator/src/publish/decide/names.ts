/**
 * Names and namespaces of children. HTTPProxy keeps contour-plus' names; every other kind gets `-<kind>` appended, so that two
 * sources of different kinds never meet in one object.
 *
 * The name depends on the annotation alone and the namespace on the allow-list: a namespace that is not allowed leaves the
 * object at home under its foreign name, as contour-plus does.
 */
import { createHash } from 'node:crypto'
import { annotation, keysUnder } from '../annotation-keys.ts'
import type { PublishOptions } from '../options.ts'
import type { Source } from '../sources/source.ts'

const NAME_LIMIT = 253

export interface Place {
  readonly name: string
  readonly namespace: string
  /** The source asks for another namespace than its own … */
  readonly isElsewhere: boolean
  /** … and the allow-list lets it. */
  readonly isAllowed: boolean
}

function place(source: Source, requested: string, allowed: readonly string[], prefix: string): Place {
  const suffix = source.kind === 'HTTPProxy' ? '' : `-${source.kind.toLowerCase()}`
  // A request for one's own namespace is no request.
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

/** Names within the limit stay as they are; longer ones keep their beginning and end in a hash of the whole. */
export function fitName(name: string): string {
  if (name.length <= NAME_LIMIT) return name
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 16)
  return `${name.slice(0, NAME_LIMIT - digest.length - 1).replace(/[-.]+$/, '')}-${digest}`
}
