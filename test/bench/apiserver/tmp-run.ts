import { figures } from '../apiserver.ts'
for (const f of figures.filter((x) => process.argv.slice(2).some((n) => x.name === `apiserver.${n}`))) {
  const t = Date.now()
  try {
    console.log(f.name, await f.measure(0), `${Date.now() - t} ms`)
  } catch (e) {
    console.log(f.name, e)
  }
}
process.exit(0)
