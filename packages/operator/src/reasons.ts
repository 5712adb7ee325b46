/**
 * The one catalogue of reason codes. A code appears unchanged in conditions, Events, metric labels, `seamark explain` and
 * docs/reasons.md; a test compares the lists. Keep each section sorted.
 */
export const REASONS = {
  // publish and wildcard: what became of a source object

  // records: what became of a wanted or found record set

  // providers: what a DNS service said
} as const satisfies Record<string, string>

export type Reason = keyof typeof REASONS
