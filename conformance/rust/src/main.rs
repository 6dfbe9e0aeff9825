//! One crate's hot loop, by name, so many times. A digest of what came out goes to standard output,
//! the nanoseconds of the best run to standard error. Inputs are made from a fixed seed.

use std::hash::Hasher;
use std::hint::black_box;
use std::time::Instant;

/// A crate, and one run of it: what came out, as bytes.
type Work = fn(&Input) -> Vec<u8>;

const WORKS: &[(&str, Work)] = &[
    ("aho-corasick", search),
    ("csv", table),
    ("lz4_flex", lz4),
    ("miniz_oxide", deflate),
    ("png", image),
    ("pulldown-cmark", markdown),
    ("regex", expressions),
    ("roxmltree", tree),
    ("serde_json", json),
    ("sha2", hash),
];

/// What is worked on.
struct Input {
    prose: String,
    json: String,
    xml: String,
    csv: String,
    markdown: String,
    picture: Vec<u8>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), rounds) = (arguments.next(), arguments.next()) else {
        for (name, _) in WORKS {
            println!("{name}");
        }
        return;
    };
    let rounds: u32 = rounds.and_then(|n| n.parse().ok()).unwrap_or(1);
    let Some((_, work)) = WORKS.iter().find(|(known, _)| *known == name) else {
        eprintln!("{name}: no such crate");
        std::process::exit(2);
    };
    let input = Input::new();
    let (mut best, mut out) = (u128::MAX, Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        out = work(black_box(&input));
        best = best.min(start.elapsed().as_nanos());
    }
    println!("{name} {} bytes, {:016x}", out.len(), digest(&out));
    eprintln!("{best}");
}

/// FNV-1a.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    hasher.write(bytes);
    hasher.finish()
}

/// A small generator, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn word(&mut self) -> &'static str {
        const WORDS: &[&str] = &[
            "the", "wall", "window", "domain", "memory", "of", "and", "a", "gate", "thread",
            "call", "host", "page", "trust", "stack", "table", "fault", "image", "limit", "number",
        ];
        WORDS[usize::try_from(self.below(WORDS.len() as u64)).unwrap_or(0)]
    }
}

impl Input {
    fn new() -> Self {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let mut prose = String::new();
        for line in 0..2_000 {
            for _ in 0..9 {
                prose.push_str(random.word());
                prose.push(' ');
            }
            prose.push_str(&format!(
                "{}@example{}.org {}\n",
                random.word(),
                line % 97,
                random.below(100_000)
            ));
        }
        let (mut json, mut xml) = (String::from("["), String::from("<list>"));
        let (mut csv, mut markdown) = (String::from("id,name,value,flag\n"), String::new());
        for id in 0..500 {
            let (name, value) = (random.word(), random.below(1_000_000));
            let real = value as f64 / 997.0;
            if id > 0 {
                json.push(',');
            }
            json.push_str(&format!(
                "{{\"id\":{id},\"name\":\"{name} \\\"{id}\\\"\",\"value\":{real},\"list\":[{value},null,true],\"in\":{{\"a\":\"{name}\"}}}}"
            ));
            xml.push_str(&format!(
                "<row id=\"{id}\" name=\"{name}\"><v>{real}</v><t>{name} &amp; {value}</t></row>\n"
            ));
            csv.push_str(&format!("{id},\"{name}, {name}\",{real},{}\n", id % 2 == 0));
            markdown.push_str(&format!(
                "## {name} {id}\n\nThe *{name}* has `{value}` and [a link](http://x.org/{id}).\n\n- one\n- **two**\n  - {name}\n\n> {name}\n\n```\n{value}\n```\n\n"
            ));
        }
        json.push(']');
        xml.push_str("</list>");
        Self {
            picture: picture(&mut random),
            prose,
            json,
            xml,
            csv,
            markdown,
        }
    }
}

/// An encoded picture of 240 by 160 points.
fn picture(random: &mut Random) -> Vec<u8> {
    let (width, height) = (240_u32, 160_u32);
    let mut points = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let noise = u32::try_from(random.below(16)).unwrap_or(0);
            for part in [x + y + noise, x * 2 + noise, (x * y) >> 6] {
                points.push(part.to_le_bytes()[0]);
            }
        }
    }
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_filter(png::Filter::Paeth);
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(&points).expect("a picture");
    writer.finish().expect("an end");
    out
}

fn search(input: &Input) -> Vec<u8> {
    let patterns = [
        "window",
        "fault",
        "example42",
        "trust stack",
        "gate host page",
        "zebra",
    ];
    let automaton = aho_corasick::AhoCorasick::new(patterns).expect("patterns");
    let mut counts = [0_u32; 6];
    for found in automaton.find_iter(&input.prose) {
        counts[found.pattern().as_usize()] += 1;
    }
    counts.iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn table(input: &Input) -> Vec<u8> {
    let mut out = Vec::new();
    let mut reader = csv::Reader::from_reader(input.csv.as_bytes());
    let mut writer = csv::Writer::from_writer(&mut out);
    for record in reader.records() {
        let record = record.expect("a record");
        let value: f64 = record[2].parse().expect("a number");
        writer
            .write_record([&record[1], &format!("{:.3}", value * 2.0), &record[0]])
            .expect("written");
    }
    drop(writer);
    out
}

fn lz4(input: &Input) -> Vec<u8> {
    let packed = lz4_flex::compress_prepend_size(input.prose.as_bytes());
    let back = lz4_flex::decompress_size_prepended(&packed).expect("what was packed");
    assert!(back == input.prose.as_bytes());
    packed
}

fn deflate(input: &Input) -> Vec<u8> {
    let packed = miniz_oxide::deflate::compress_to_vec(input.prose.as_bytes(), 6);
    let back = miniz_oxide::inflate::decompress_to_vec(&packed).expect("what was packed");
    assert!(back == input.prose.as_bytes());
    packed
}

fn image(input: &Input) -> Vec<u8> {
    let decoder = png::Decoder::new(std::io::Cursor::new(&input.picture));
    let mut reader = decoder.read_info().expect("a header");
    let mut points = vec![0; reader.output_buffer_size().expect("a size")];
    reader.next_frame(&mut points).expect("a picture");
    points
}

fn markdown(input: &Input) -> Vec<u8> {
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, pulldown_cmark::Parser::new(&input.markdown));
    out.into_bytes()
}

fn expressions(input: &Input) -> Vec<u8> {
    let mail = regex::Regex::new(r"\b([a-z]+)@(example\d+)\.org (\d{2,})").expect("an expression");
    let pair = regex::Regex::new(r"(?i)(wall|gate)\s+(?:of|and)\s+(\w+)").expect("an expression");
    let mut out = Vec::new();
    for found in mail.captures_iter(&input.prose) {
        out.extend(found[3].bytes());
    }
    for found in pair.captures_iter(&input.prose) {
        out.extend(found[2].bytes());
    }
    out
}

fn tree(input: &Input) -> Vec<u8> {
    let document = roxmltree::Document::parse(&input.xml).expect("a document");
    let mut out = Vec::new();
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        out.extend(node.attribute("id").unwrap_or_default().bytes());
        out.extend(node.text().unwrap_or_default().bytes());
    }
    out
}

fn json(input: &Input) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_str(&input.json).expect("a document");
    serde_json::to_vec(&value).expect("a document")
}

fn hash(input: &Input) -> Vec<u8> {
    use sha2::Digest;
    let mut out = sha2::Sha256::digest(input.prose.as_bytes()).to_vec();
    out.extend(sha2::Sha512::digest(input.prose.as_bytes()));
    out
}
