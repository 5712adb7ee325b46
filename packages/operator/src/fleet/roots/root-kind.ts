/**
 * What the fleet needs of a kind of root, one implementation each for Ingress, HTTPRoute and Route. Pure.
 */
import { type AddressEntry, readAddress } from '@seamark/dialects'
import type { Immutable, Kind, Obj } from '@seamark/kube/object'
import type { LeafAddress } from '../../api/leaf-ingress.ts'
import type { Reason } from '../../reasons.ts'

/** A manifest as it is applied on a member. */
export type Manifest = Obj & { apiVersion: string; kind: string; metadata: { name: string; namespace: string } }

export interface RenderFacts {
  /** Hosts of the root that it owns. */
  readonly ownedHosts: ReadonlySet<string>
  /** Host → generated name that is served too. */
  readonly managedHosts: ReadonlyMap<string, string>
  readonly ingressClassMap: Readonly<Record<string, string>>
  readonly parentRefMap: readonly ParentMapping[]
  /** Keys, or prefixes that end with `*`. */
  readonly allowedAnnotations: readonly string[]
}

interface ParentMapping {
  readonly from: { readonly namespace?: string | undefined; readonly name: string }
  readonly to: {
    readonly namespace?: string | undefined
    readonly name: string
    readonly sectionName?: string | undefined
  }
}

export type Rendered =
  | { readonly manifests: readonly Manifest[] }
  | { readonly refused: Reason; readonly message: string }

/** The spec of a manifest that a policy patched, without what the root may not have. */
export type Confined =
  | { readonly spec: Readonly<Record<string, unknown>>; /** What was left out. */ readonly dropped: readonly string[] }
  | { readonly message: string }

/** The status of a leaf on its member. */
export interface Admission {
  readonly isAdmitted: boolean
  readonly addresses: readonly LeafAddress[]
  readonly message: string
}

export interface AdmissionFacts {
  readonly routerName: string | undefined
  /** Addresses of a Gateway of the member; undefined: it does not exist or is not programmed. */
  readonly gatewayAddresses: (namespace: string, name: string) => readonly LeafAddress[] | undefined
}

export type Spec = Readonly<Record<string, unknown>>

export interface RootKind<T extends Obj = Obj> {
  readonly kind: Kind<T>
  /** Normalised, without duplicates, sorted. */
  hostsOf(root: Immutable<T>): string[]
  /** Names of Services in the namespace of the root; without duplicates, sorted. */
  backendsOf(root: Immutable<T>): string[]
  usesTls(root: Immutable<T>): boolean
  render(root: Immutable<T>, facts: RenderFacts): Rendered
  /**
   * Hosts that are not owned, and what serves hosts that nobody named, are left out unless the rendered spec has it; class
   * and parents are those of the rendered spec.
   */
  confine(patched: Spec, rendered: Spec, isOwned: (host: string) => boolean): Confined
  readAdmission(leaf: Immutable<T>, facts: AdmissionFacts): Admission
}

/** Configuration code of a member's proxy, further hosts of an Ingress, its class, and our own: no prefix allows them. */
const NEVER_COPIED = /snippet|server-alias|^kubernetes\.io\/ingress\.class$|^seamark\.io\//i

/** Copied to leaves: what the allow-list permits. */
export function copyAnnotations(
  annotations: Readonly<Record<string, unknown>> | undefined,
  allowed: readonly string[],
): Record<string, string> {
  const entries = Object.entries(annotations ?? {})
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    .filter(
      ([key]) =>
        !NEVER_COPIED.test(key) &&
        allowed.some((rule) => (rule.endsWith('*') ? key.startsWith(rule.slice(0, -1)) : key === rule)),
    )
  return Object.fromEntries(entries)
}

/** The usable addresses of a status, in its order. */
export function leafAddresses(entries: readonly AddressEntry[]): LeafAddress[] {
  const read = entries.map(readAddress).filter((address) => address !== undefined)
  return read.map(({ type, text: value }) => ({ type, value }))
}

/** Sorted, so that the order in which a member reports addresses causes no writes. */
export function uniqueAddresses(addresses: readonly LeafAddress[]): LeafAddress[] {
  const unique = new Map(addresses.map((address) => [`${address.type} ${address.value}`, address]))
  return [...unique.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, address]) => address)
}

export function uniqueSorted(values: Iterable<string>): string[] {
  return [...new Set(values)].sort()
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
