//! Parts of the module that need no server, with their own tests. The module itself is a library for httpd, which no test links.

#[path = "../src/caught.rs"]
mod caught;
#[path = "../src/conversions.rs"]
mod conversions;
#[path = "../src/few.rs"]
mod few;
#[path = "../src/folders.rs"]
mod folders;
#[path = "../src/homes.rs"]
mod homes;
#[path = "../src/object.rs"]
#[expect(dead_code, reason = "names are for messages of a server")]
mod object;
#[path = "../src/places.rs"]
mod places;
#[path = "../src/queries.rs"]
mod queries;
#[path = "../src/quick.rs"]
mod quick;
#[path = "../src/turns.rs"]
#[expect(dead_code, reason = "a process begins in a server alone")]
mod turns;
