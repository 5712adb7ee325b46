export function retireChunks(folder: string, current: ReadonlySet<string>, nowMs: number): void
