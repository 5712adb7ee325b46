/**
 * Publish's settings as one flat immutable value, derived from the configuration schema (config.ts).
 *
 * `unified` is the base of `seamark run`, `dropIn` is the observable behaviour of contour-plus 0.16.2 (docs/publish.md,
 * "Moving from contour-plus"). Flags, environment and the configuration file override single fields of one of the two.
 */
import { parseDurationMs } from '@seamark/kube'
import type { Grants } from '@seamark/dialects'
import type { ProcessParts } from '../hosts/publisher.ts'
import type { RootSelection } from '../hosts/root.ts'
import { PublishConfig } from './config.ts'

type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T

type RateFields = 'certificateApplyLimit' | 'certificateApplyRetryBaseDelay' | 'certificateApplyRetryMaxDelay'

export type PublishOptions = Immutable<
  Omit<PublishConfig, 'enabled' | 'roots' | RateFields> & {
    certificateApply: CertificateApplyOptions
    /** Copy `owned-by` into a secretTemplate that has other annotations, as contour-plus does. Not configurable. */
    ownedByInSecretTemplate: boolean
    /** The names that a namespace may use; from the manager's configuration. */
    grants: Grants
    /** `ignored`: neither roots nor load balancers are looked at; publish publishes every host. */
    roots: PublishConfig['roots'] | 'ignored'
    /** What else this process runs. */
    parts: ProcessParts & { fleet: { roots: RootSelection } | undefined }
  }
>

export type SourceKind = PublishOptions['sources'][number]
export type ChildKind = PublishOptions['children'][number]

export interface CertificateApplyOptions {
  /** Certificate applies per second; 0 applies without a queue. */
  readonly perSecond: number
  readonly retryBaseMs: number
  readonly retryMaxMs: number
}

export function publishOptions(
  config: PublishConfig,
  grants: Grants = [],
  parts: PublishOptions['parts'] = { fleet: undefined, balance: false },
): PublishOptions {
  const {
    enabled: _,
    certificateApplyLimit,
    certificateApplyRetryBaseDelay,
    certificateApplyRetryMaxDelay,
    ...same
  } = config
  return {
    ...same,
    grants,
    parts,
    certificateApply: {
      perSecond: certificateApplyLimit,
      retryBaseMs: parseDurationMs(certificateApplyRetryBaseDelay) ?? 0,
      retryMaxMs: parseDurationMs(certificateApplyRetryMaxDelay) ?? 0,
    },
    ownedByInSecretTemplate: false,
  }
}

export const unified: PublishOptions = publishOptions(PublishConfig.parse({}))

export const dropIn: PublishOptions = {
  ...unified,
  sources: ['HTTPProxy'],
  prune: false,
  hostnameTargets: false,
  annotations: false,
  exclude: false,
  foreign: 'take',
  arbitrateHosts: false,
  roots: 'ignored',
  ownedByInSecretTemplate: true,
  conditions: false,
}
