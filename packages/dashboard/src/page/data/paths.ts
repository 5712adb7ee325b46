/** Permalinks of single things. */
export const hostPath = (name: string): string => `/hosts/${encodeURIComponent(name)}`
export const clusterPath = (name: string): string => `/clusters/${encodeURIComponent(name)}`
export const zonePath = (name: string): string => `/zones/${encodeURIComponent(name)}`
