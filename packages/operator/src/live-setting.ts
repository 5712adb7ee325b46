/** Metadata in the schema of a setting: a change in the file takes effect while the manager runs. Without it a restart is needed. */
export const LIVE = { takesEffect: 'live' } as const
