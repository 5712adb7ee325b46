/** The public surface of @seamark/dashboard. */
export * from './api/state.ts'
export * from './api/host-page.ts'
export * from './api/plan-page.ts'
export * from './api/stream.ts'
