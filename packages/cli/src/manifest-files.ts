/** Manifests from files: YAML or JSON, several documents, Lists. */
import { readFile } from 'node:fs/promises'
import { messageOf } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { type Document, LineCounter, parseAllDocuments } from 'yaml'
import { CommandError, EXIT } from './command.ts'

/** `-` is stdin. Throws CommandError on what cannot be read or is no manifest. */
export async function readManifests(files: readonly string[]): Promise<Obj[]> {
  return (await Promise.all(files.map(readFileObjects))).flat()
}

async function readFileObjects(file: string): Promise<Obj[]> {
  return parseYaml(file, await readText(file)).flatMap((value) => {
    const object = value as (Obj & { items?: Obj[] }) | null
    if (object === null) return []
    const items = object.kind === 'List' ? (object.items ?? []) : [object]
    for (const item of items)
      if (item?.kind === undefined || item.metadata?.name === undefined)
        throw new CommandError(`${file}: a document has no kind or metadata.name`, EXIT.usage)
    return items
  })
}

/** `-` is stdin. */
export async function readText(file: string): Promise<string> {
  try {
    return await readFile(file === '-' ? '/dev/stdin' : file, 'utf8')
  } catch (cause) {
    throw new CommandError(`cannot read ${file}: ${messageOf(cause)}`, EXIT.error, { cause })
  }
}

/** Expanded aliases in one document. A few lines of YAML can stand for gigabytes. */
const MAX_ALIASES = 100

/** Every document of the text. Throws CommandError with file and line. */
export function parseYaml(file: string, text: string): unknown[] {
  const lineCounter = new LineCounter()
  const documents = parseAllDocuments(text, { schema: 'core', logLevel: 'silent', prettyErrors: false, lineCounter })
  if (!Array.isArray(documents)) return []
  return documents.map((document: Document) => {
    const [fault] = document.errors
    if (fault !== undefined) {
      const { line, col } = lineCounter.linePos(fault.pos[0])
      throw new CommandError(`${file}:${line}:${col}: it is not YAML: ${fault.message}`, EXIT.usage)
    }
    try {
      return document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown
    } catch (cause) {
      if (!(cause instanceof ReferenceError)) throw cause
      const { line } = lineCounter.linePos(document.range?.[0] ?? 0)
      throw new CommandError(
        `${file}:${line}: the document has unknown aliases, or more than ${MAX_ALIASES} when they are expanded; write their values out`,
        EXIT.usage,
      )
    }
  })
}
