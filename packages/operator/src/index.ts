/** The public surface of @seamark/operator. */
export * from './api/certificate.ts'
export * from './api/crds.ts'
export * from './api/dns-endpoint.ts'
export * from './api/gateway.ts'
export * from './api/http-proxy.ts'
export * from './api/route.ts'
export * from './config.ts'
export * from './reasons.ts'
export { explain, type Explanation, type ExplainFacts, type Hop } from './explain/chain.ts'
export { dryRun, type DryRunReport, summarize } from './publish/dry-run.ts'
export {
  CONTOUR_PLUS_FLAGS,
  environmentName,
  type FlagName,
  type FlagValues,
  readContourPlusFlags,
} from './publish/flags.ts'
export { dropIn, type PublishOptions, unified } from './publish/options.ts'
export { wildcardDefaults, type WildcardOptions } from './wildcard/options.ts'
export {
  CONFORMANCE,
  type ConformanceCase,
  ConformanceError,
  type ConformanceSubject,
} from './providers/conformance.ts'
export { embeddedProvider } from './providers/embedded.ts'
export { type MemoryProvider, memoryProvider } from './providers/memory.ts'
export { powerdnsProvider } from './providers/powerdns.ts'
export type { Capabilities, Provider, ProviderZone } from './providers/provider.ts'
export { rfc2136Provider } from './providers/rfc2136.ts'
