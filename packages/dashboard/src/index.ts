/** The public surface of @seamark/dashboard. */
export * from './api/state.ts'
export * from './api/host-page.ts'
export * from './api/plan-page.ts'
export * from './api/stream.ts'
export { type DashboardOptions, dashboardPart } from './server/dashboard.ts'
export { openStatus, type OpenStatus, type StatusOptions } from './server/status.ts'
export { type Assets, findPageFolder, readAssets } from './server/assets.ts'
