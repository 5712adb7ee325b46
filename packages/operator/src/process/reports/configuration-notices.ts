/**
 * What is said when the configuration file changes while the manager runs: what took effect, what waits for a restart, and why
 * a file cannot be used. Pure.
 */
import type { Notice } from './notices.ts'

/** Most faults that a message lists. */
const SHOWN_FAULTS = 5

export type FoundConfiguration =
  | { readonly kind: 'invalid'; readonly faults: readonly string[] }
  | {
      readonly kind: 'valid'
      /** Settings that took effect. */
      readonly live: readonly string[]
      /** Settings that take effect at the next start. */
      readonly restart: readonly string[]
    }

/** `before`: what was found at the last change. `at`: an RFC 3339 time, so that each change is an Event of its own. */
export function configurationNotices(
  found: FoundConfiguration,
  { path, at, before }: { readonly path: string; readonly at: string; readonly before: FoundConfiguration },
): Notice[] {
  if (found.kind === 'invalid') {
    const shown = found.faults.slice(0, SHOWN_FAULTS).join('; ')
    const more = found.faults.length > SHOWN_FAULTS ? `; and ${found.faults.length - SHOWN_FAULTS} more` : ''
    return [
      {
        reason: 'ConfigurationInvalid',
        severity: 'Warning',
        message: `${path} was changed at ${at} and cannot be used; the manager keeps what it runs with, and would not start with the file: ${shown}${more}`,
        fields: { faults: found.faults },
      },
    ]
  }
  const notices: Notice[] = []
  const { live, restart } = found
  const waited = before.kind === 'valid' ? before.restart : []
  const isSettled = restart.length === 0 && waited.length > 0
  if (live.length > 0)
    notices.push({
      reason: 'ConfigurationChanged',
      severity: 'Normal',
      message: `${path} was changed at ${at}; in effect without a restart: ${live.join(', ')}${isSettled ? '; nothing waits for a restart any more' : ''}`,
      fields: { settings: live },
    })
  if (restart.length > 0 && restart.join() !== waited.join())
    notices.push({
      reason: 'RestartNeeded',
      severity: 'Warning',
      message: `${path} was changed at ${at}; restart the manager for: ${restart.join(', ')}`,
      fields: { settings: restart },
    })
  if (live.length === 0 && (isSettled || (restart.length === 0 && before.kind === 'invalid')))
    notices.push({
      reason: 'ConfigurationChanged',
      severity: 'Normal',
      message: `${path} was changed at ${at}; it is again as the manager runs`,
    })
  return notices
}
